"""What the kit's own service in SQLite, which finds words, does not find."""

import pytest
from adk import event, found, run, session, texts
from google.adk import memory as kit
from google_adk_mnemic import MnemicMemoryService

if "SqliteMemoryService" not in kit.__all__:
    pytest.skip("this version of the kit has no service in SQLite", allow_module_level=True)

SAID = [
    "I am allergic to peanuts",
    "My daughter starts school in September",
    "We moved to Oslo last winter",
    "I drive an old Volvo",
    "My boss is called Henrik",
    "I gave up smoking two years ago",
    "The dog needs its injections on Friday",
    "I would rather fly in the morning",
    "Our wedding was on a beach in Crete",
    "I studied chemistry in Lund",
]
PARAPHRASES = [
    ("Which foods are dangerous for her?", 0),
    ("When do classes begin for her child?", 1),
    ("Which city is home?", 2),
    ("What car does he own?", 3),
    ("Who is the manager at work?", 4),
    ("Does he use cigarettes?", 5),
    ("When does the puppy see the vet?", 6),
    ("What departure time suits him for flights?", 7),
    ("Where did they get married?", 8),
    ("What was the subject at university?", 9),
]
OTHERS = [
    ("ru", "Моя сестра живёт в Москве", "где живут сёстры"),
    ("de", "Die Rechnungen liegen im Schrank", "Rechnung"),
    ("zh", "我对花生过敏", "花生"),
    ("ja", "私は毎朝コーヒーを飲みます", "コーヒー"),
    ("fr", "Mes enfants mangent des pommes", "enfant pomme"),
    ("es", "Me gustan las películas antiguas", "pelicula antigua"),
]


@pytest.fixture(params=["mnemic", "sqlite"])
def service(request, tmp_path):
    if request.param == "mnemic":
        opened = MnemicMemoryService(tmp_path / "memory.db")
        yield opened
        run(opened.memory.close())
    else:
        yield kit.SqliteMemoryService(tmp_path / "memory.db")


def firsts(service, questions):
    return sum(run(texts(service, query))[:1] == [SAID[right]] for query, right in questions)


def test_paraphrases_are_found_first(service):
    run(service.add_session_to_memory(session(*map(event, "0123456789", SAID))))
    right = firsts(service, PARAPHRASES)
    assert right >= 8 if isinstance(service, MnemicMemoryService) else right <= 2


def test_inflected_words_of_other_languages_are_found(service):
    run(service.add_session_to_memory(session(*(event(key, text) for key, text, _ in OTHERS))))
    right = sum(run(texts(service, query))[:1] == [text] for _, text, query in OTHERS)
    assert right == 6 if isinstance(service, MnemicMemoryService) else right <= 3


def test_a_memory_can_be_deleted(service):
    run(service.add_session_to_memory(session(event("e1", "The code is tangerine"))))
    (memory,) = run(found(service, "code"))
    deleting = service.delete_memory(app_name="app", user_id="alice", memory_id=memory.id)
    if isinstance(service, MnemicMemoryService):
        run(deleting)
        assert run(found(service, "code")) == []
    else:
        with pytest.raises(NotImplementedError):
            run(deleting)
