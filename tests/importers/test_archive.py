"""Exports of chats as zips, and what may be in one."""

import json
import random
import zipfile

import pytest

from mnemic.errors import SourceError
from mnemic.importers.archive import OTHER_FILES
from tests.importers.sources import CHATGPT, CLAUDE


@pytest.mark.parametrize(
    ("kind", "items", "count"), [("chatgpt", CHATGPT, 3), ("claude", CLAUDE, 4)]
)
def test_a_zip_has_the_same_as_its_file(check, written, kind, items, count):
    plain = check(kind, written(items))
    zipped = check(kind, written(items, "export.zip", ["user.json", "images/1.png"]))
    assert zipped.found == plain.found == count
    assert zipped.lost.pop(OTHER_FILES) == 2
    assert zipped.lost == plain.lost


def test_conversations_in_several_files_of_a_zip_are_all_read(check, tmp_path):
    path = tmp_path / "export.zip"
    second = json.loads(json.dumps(CHATGPT).replace('"q"', '"z"'))
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("conversations-000.json", json.dumps(CHATGPT))
        archive.writestr("export/conversations-001.json", json.dumps(second))
    assert check("chatgpt", path).found == 6


@pytest.mark.parametrize("kind", ["chatgpt", "claude"])
@pytest.mark.parametrize(
    "item", [1, None, [], {}, {"mapping": "\ud800", "uuid": 1, "chat_messages": {}}]
)
def test_another_form_is_an_error_that_names_the_conversation(check, written, kind, item):
    with pytest.raises(
        SourceError, match=r"conversations\.json, conversation 1: it is not as exports have it"
    ):
        check(kind, written([item]))


@pytest.mark.parametrize("kind", ["chatgpt", "claude"])
def test_a_zip_bomb_is_refused_before_it_is_read(check, tmp_path, kind):
    path = tmp_path / "bomb.zip"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("conversations.json", b" " * 50_000_000)
    with pytest.raises(SourceError, match="50000000 bytes, of"):
        check(kind, path)


def test_members_of_a_zip_are_read_by_their_names_and_nothing_is_unpacked(check, tmp_path):
    path = tmp_path / "odd" / "export.zip"
    path.parent.mkdir()
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("../../evil.json", "[]")
        archive.writestr("../conversations.json", "[]")
    assert check("chatgpt", path).found == 0
    assert [each.name for each in tmp_path.rglob("*")] == ["odd", "export.zip"]


def test_a_damaged_zip_is_an_error(check, written):
    path = written(CHATGPT, "export.zip")
    whole = bytearray(path.read_bytes())
    whole[80:90] = b"\xff" * 10
    path.write_bytes(whole)
    with pytest.raises(SourceError, match="damaged"):
        check("chatgpt", path)


def test_a_zip_with_a_password_is_an_error(check, written):
    path = written(CHATGPT, "export.zip")
    whole = bytearray(path.read_bytes())
    at = whole.rindex(b"PK\x01\x02")
    whole[at + 8] |= 1
    path.write_bytes(whole)
    with pytest.raises(SourceError, match="needs a password"):
        check("chatgpt", path)


@pytest.mark.parametrize("method", [zipfile.ZIP_LZMA, zipfile.ZIP_BZIP2])
def test_a_zip_of_another_method_is_an_error(check, tmp_path, method):
    path = tmp_path / "export.zip"
    with zipfile.ZipFile(path, "w", method) as archive:
        archive.writestr("conversations.json", json.dumps(CHATGPT))
    with pytest.raises(SourceError, match="another program; unpack it first"):
        check("chatgpt", path)


@pytest.mark.filterwarnings("ignore:Duplicate name")
def test_two_files_of_one_name_in_a_zip_are_both_read(check, tmp_path):
    path = tmp_path / "export.zip"
    second = json.loads(json.dumps(CHATGPT).replace("Oslo", "Bergen"))
    with zipfile.ZipFile(path, "w") as archive:
        for items in (CHATGPT, second):
            archive.writestr("conversations.json", json.dumps(items))
    assert check("chatgpt", path).found == 6


@pytest.mark.parametrize("seed", range(20))
def test_a_damaged_zip_is_one_sentence_or_is_read(check, written, seed):
    path, numbers = written(CHATGPT, "export.zip", ["user.json"]), random.Random(seed)  # noqa: S311 - repeatable
    whole = path.read_bytes()
    for _ in range(50):
        damaged = bytearray(whole)
        for _ in range(numbers.choice([1, 2, 5])):
            damaged[numbers.randrange(len(damaged))] = numbers.choice([0, 255, seed])
        path.write_bytes(damaged[: numbers.choice([None, numbers.randrange(len(damaged))])])
        try:
            assert check("chatgpt", path).found <= 6
        except SourceError as error:
            assert "\n" not in str(error)  # noqa: PT017 - either may be
