"""Words that the judge knows by their part in a sentence, and words that mean the same."""


def listed(text: str) -> list[str]:
    """Return the words of a text in order."""
    return text.split()


def words(text: str) -> frozenset[str]:
    """Return the words of a text."""
    return frozenset(listed(text))


STOP_WORDS = words(
    """a an the you your yours this that these those it its there here he she him her his hers they them their
    theirs who whom whose which what where when why how is am are was were be been being do does did
    have has had having will would shall should can could may might must ought and or but so than
    as if then of in on at by for with to from into onto about over under up out off down around
    very really quite just also too even again still already now currently today please let s t
    ve re ll d m own such some any each every both either all most more one ones own got get gets
    getting gotten any anything something someone somebody anyone anybody only ever later because
    since while though although after before until till during per within between through via
    right away always at least no not never none nobody nothing neither nor without yes oh
    well actually instead once thing things way lot lots kind sort bit much many few several other
    another else new goes go went going come comes came make makes made take takes took taken give
    gives gave put puts keep keeps kept say says said tell tells told be back
    use used uses using set sets whole along across against upon rather else anymore
    yesterday tomorrow tonight recently lately finally
    need needs mean means start starts end ends day days week weeks month months year years
    hour hours minute minutes second seconds time times o'clock am pm"""
)

FIRST_PERSON = words("i me my mine myself we us our ours ourselves user users")
THIRD_PERSON = words("he she him her his hers it its they them their")

PREPOSITIONS = words(
    "for of in on at with from to under during per via within between by after before"
)

NEGATORS = """
not, no, never, none, nobody, nothing, neither, nor, without, no one, no longer, not any, give up,
gave up, given up, hardly, scarcely, barely, cease, refuse to, unable, lack, lacks, lacking, free of, avoid,
avoids, avoiding, rid of, unless, stop using, anything but, far from, stay away from, keep away from,
nowhere, cannot, swear off, swore off, quit, rarely, seldom, instead of, rather than, drop out, not true, not the case, untrue that
"""

# A clause ends here, and with it what a negation says.
CLAUSE_WORDS = words(
    "but because since although though while so and who which if when until till whereas after therefore"
)

# The first memory speaks of the past, or of what only may be.
PAST_CUES = """
used to, formerly, previous, previously, former, in the past, back then, at that time, ex, earlier
job, as a child, when i was, when he was, when she was, when they were, as a student, in my youth,
years ago, in those days, originally, at first, until recently, at the time, old job, back in the day
"""
# Times gone by: of the older memory they say that it is over, of the newer one that it has come.
GONE_CUES = """
last year, last month, last week, last summer, last winter, last season, last spring, last autumn, yesterday
"""
PRESENT_CUES = """
now, nowadays, these days, this year, today, currently, at present, present, by now, this month, this week,
this summer, this winter, meanwhile, this season, at the moment
"""
PLAN_CUES = """
plan, plans, planning, think about, thinking about, consider, considering, might, hope, hopes, hoping, would like, dream
of, dreams of, dreaming of, intend, intends, wonder, wonders, wondering, perhaps, maybe, someday,
thinks of, toying with, tempted, next year, eventually, going to, considers, proposal,
suggested, suggests, proposed, possibly
"""
EXCEPTION_CUES = (
    "only, except, unless, apart from, other than, but for, besides, excluding, exception, save for"
)
# There can be only one of what these words say.
EXCLUSIVE_CUES = """
favourite, favorite, most, best, only, more than any, always, prefer, prefers, default, main, sole, primary, instead, now, exclusively, solely
"""
# The second memory says that something is not as it was.
CHANGE_CUES = """
switch, switched, replaced, replace, moved, move, changed, change, swapped, swap, traded, renamed, repainted,
relocated, postponed, rescheduled, migrated, upgraded, downgraded, brought forward, put back, pushed
back, put off, converted, transferred, no longer, after all, instead, from now on, corrected, correction, actually,
turned out, turns out, rather than, now, these days, meanwhile, anymore, any more, since, extended,
shortened, raised, lowered, increased, reduced, cut, became, become, turned into, gave up, stopped, took over,
succeeded by, rebranded, moved out, split up, ported, rewrote, rewritten, has been moved, updated, revised,
new, has left, quit, dropped
"""

# Verbs whose object may be many things at once: two different ones do not disagree.
MANY_VALUED = words(
    """like love enjoy adore speak play visit know plant learn try read watch listen cook
    grow sing collect buy bought meet see saw eat drink bake study own have has had met hate dislike
    fear need help support teach win order accept read contain include
    sell offer fond of studied sang saw ate drank attend invite fix"""
)

# Verbs and nouns whose object is one thing: two different ones disagree.
FUNCTIONAL = """
live, lives, moved to, reside, relocated, settled, based, home, work, works, employed, employer, job, joined, hired,
works for, works at, employee, married, wife, husband, spouse, partner, fiance, fiancee, engaged, called, named,
name, goes by, born, birthplace, hometown, grew up, native, mother tongue, first language, favourite, favorite, best
loved, most, prefer, prefers, rather, sooner, picks, choose, chose, default, set, runs on, run, written in, implemented, written, stored, kept,
keep, lies, located, hidden, lives, address, password, branch, email, owner, manager, boss, capital, model, make, brand, type,
version, port, host, url, surgeon, doctor, dentist, teacher, lawyer, landlord, ceo, captain, president, leader,
head, chair, editor, author, supervisor, tutor, trainer, vet, nationality, profession, occupation, colour, painted,
repainted, size, format, encoding, licence, protocol, framework, theme, font, currency, region, provider, host,
hosted, deployed, deploys, uses, use, using, built, build, managed, manages, drives, drive, rides, commutes, goes to, travels, attends,
title, nickname, address me, call me, call, motto, responsible, leads, lead, chairs, runs, maintains, maintained, owned, belongs, made of,
hash, hashed, sign, signed, log, logs, compressed, serves, served, answer, respond, reply, replies, wants, want, always,
located, situated, parked, major, majors, degree, species, breed, race, religion, diet, follows, team, room,
bound, connects, connect, talks, tracked, track, backed up, uploaded, go to, sits, seat, stands, stays, venue,
takes place, held, happens, hosted, written by, paid, paid by, pay, pays, sends, sent, only
"""

SYNONYMS = """
flat, apartment, condo
house, home
wife, husband, spouse, married, marry, partner, wedding, wed, fiance, fiancee
child, kid, children, kids, son, daughter, boy, girl, offspring
begin, start, commence, kick-off
end, finish, ends, run out, expire, lapse
close, shut, closes
purchase, buy, bought
car, automobile, vehicle
bike, bicycle, cycle
film, movie
job, work, employed, employer, employ, profession, occupation, career
company, firm, business
doctor, physician, surgery
phone, mobile, telephone, smartphone, cellphone
picture, photo, photograph, photography, image
reply, answer, response, respond, replies
mail, email, e-mail
meeting, appointment
repair, fix, mend
weigh, weight, scale
cost, price, pay, fee, charge, paid, costs, rent
height, tall
length, long
width, wide, side
depth, deep
age, old
sign up, sign-up, registration, enrolment, register, participant
seat, sit
capacity, seat, hold
born, birthday, birth, birthdate
marry, wedding
land, touch down, arrive, landing, arrival, lands
depart, leave, departure, leaves, take off
flight, plane, fly, flies, flew, airplane
train, railway, rail
drive, car
travel, journey, trip
deadline, due, date, submit
deploy, deployment, release, rollout
people, person
student, pupil
bug, defect, issue
ticket, issue
database, db
config, configuration, setting
repository, repo
folder, directory
timeout, give up, time out
retry, retries, tried again, attempt
bin, waste, rubbish, garbage, trash
lorry, truck
garden, yard
shop, store
employee, staff
illness, sick, ill, disease
drug, medicine, medication, pill, tablet
holiday, vacation, leave
autumn, fall
evening, night
kitchen, cook
mother, mum, mom
father, dad, daddy
grandmother, grandma, granny, gran
grandfather, grandpa, granddad
brother, sibling
sister, sibling
live, reside, dwell, lives
born, native
stay, live
study, university, degree
prefer, favourite, like best, love most, favour
pick, choose, prefer, select
want, wish, ask, asked, would like
log, logging
picture, image
salary, wage, pay, earn
language, tongue
native language, first language, mother tongue
chef, cook
lawyer, attorney, solicitor
autumn, fall
sofa, couch
shut, closed
noon, midday
pupil, student
trousers, pants
biscuit, cookie
lift, elevator
rent, lease
speed, fast
big, large, size
parcel, package
insurance, insured
weekly, week
nightly, night
daily, day
monthly, month
yearly, year, annual, annually
hourly, hour
test, exam, examination
teacher, tutor, instructor
oven, bake, baking
dog, puppy
cat, kitten
contract, agreement
invoice, bill
boss, manager, supervisor
delete, remove, erase, purge
backup, back up
library, package
endpoint, api
key, keys
gym, fitness
cinema, movies
hall, auditorium
race, marathon
need, require, call for
theme, mode
comment, note
summary, summarise, abstract
warranty, guarantee
mountain, peak, summit
storey, floor, level
trail, path, route, hike
money, cash
lesson, class, course
crate, box, carton
pond, pool
"""

IRREGULAR = """
was be, were be, is be, are be, am be, been be, has have, had have, went go, gone go, goes go,
bought buy, brought bring, came come, chose choose, chosen choose, cut cut, did do, done done,
drank drink, drunk drink, drove drive, driven drive, ate eat, eaten eat, fell fall, fallen fall,
felt feel, found find, flew fly, flown fly, forgot forget, forgotten forget, gave give, given give,
grew grow, grown grow, held hold, kept keep, knew know, known know, laid lay, led lead, left left,
lent lend, lost lose, made make, meant mean, met meet, paid pay, put put, ran run, read read,
rode ride, ridden ride, rang ring, rose rise, risen rise, said say, saw see, seen see, sold sell,
sent send, set set, shook shake, shut shut, sang sing, sung sing, sat sit, slept sleep, spoke speak,
spoken speak, spent spend, stood stand, stole steal, stolen steal, swam swim, took take, taken take,
taught teach, told tell, thought think, threw throw, thrown throw, understood understand, wore wear,
worn wear, won win, wrote write, written write, built build, broke break, broken broken, began begin,
begun begin, became become, hid hide, hidden hide, hung hang, hurt hurt, caught catch, fed feed, dug dig,
children child, men man, women woman, people people, feet foot, teeth tooth, mice mouse, geese goose,
wives wife, knives knife, leaves leave, halves half, shelves shelf, lying lie, lies lie,
dying die, died die, dies die, color colour, favorite favourite, center centre, meter metre, liter litre,
license licence, news news, gas gas, bus bus, buses bus, plus plus, address address, better better, best best,
quit quit, fought fight, sought seek, struck strike, tore tear, torn tear, woke wake, woken wake, lit light,
organization organisation, gray grey, theater theatre, program programme, travelled travel, traveling travel,
cancelled cancel, canceled cancel, boss boss, kilos kilo, during during, evening evening,
morning morning, building building, meeting meeting, thing thing, nothing nothing, something something,
wedding wedding, spring spring, string string, king king, ring ring, bring bring, red red, bed bed, need need,
feed feed, speed speed, hundred hundred, ceiling ceiling, clothing clothing, painting painting, july july,
daily daily, only only, family family, italy italy, reply reply, early early, fly fly, supply supply, rely rely,
apply apply, belly belly, jelly jelly, ally ally, bully bully, july july, lily lily, silly silly, ugly ugly,
shrank shrink, shrunk shrink, sank sink, sunk sink, froze freeze, frozen frozen, blew blow, blown blow, drew draw,
drawn draw, lain lie, rose rise, spun spin, stuck stick, swung swing, swept sweep, wept weep, crept creep, dealt deal,
slid slide, spread spread, shot shoot, split split, bent bend, bled bleed, bound bind, clung cling, dreamt dream,
learnt learn, burnt burn, woven weave, wove weave, shone shine, sewn sew, sown sow, swore swear, sworn swear, holy holy, lonely lonely, likely likely, friendly friendly, elderly elderly
"""

VERBS = words(
    """be am is are was were been being have has had do does did will would shall should can could may
    might must accept add agree allow answer apply arrive ask attend bake be bear beat become begin
    believe belong bite block book borrow break bring build burn buy call cancel carry catch cause
    celebrate change charge check choose clean climb close collect come commute complain complete
    confirm connect consist contain contains cook cost costs count cover crash cross cut cycle dance
    deal decide deliver depart deploy describe detest die dig dislike do double draw dream drink drive
    drop earn eat email employ end enjoy enter escape expect expire explain face fail fall fear feed
    feel fight fill find finish fit fix flow fly follow forbid forget gain get give go graduate grow
    guard hang happen hate have hear help hide hire hit hold hope host hurt improve include increase
    insist join jump keep kick kill knit know land last laugh launch lead learn leave lend let lie like
    limit list listen live log look lose love maintain make manage marry mean measure meet mention
    migrate miss move need offer open order owe own paint park pass pay perform pick plan plant play
    point postpone prefer prepare prevent print process produce promise provide publish pull push put
    quit raise reach read receive recommend record reduce refuse register reject release remember
    remove rent repair replace reply report require retire return ride ring rise run save say search
    see seem sell send serve set share ship show sign sing sit sleep smell smoke solve speak spend
    stand start stay steal stop store study succeed suffer suggest support swim switch take talk taste
    teach tell terminate think throw tie touch train translate travel treat try turn understand update
    upload use visit wait wake walk want warn wash watch water wear weigh win wish work worry write
    rides hosts uses seats keeps lies got gets weighs drives covers lasts begins needs owns keeps
    trades wants prefers collects reads rents rose fell swears earns costs opens closes starts ends
    listens supports holds teaches speaks drinks eats sings plays swims
    abandon absorb accompany account achieve acquire act adapt address adjust admire admit adopt advise
    afford aim amount announce apologise appear appoint appreciate approach approve argue arrange
    assign assist assume assure attach attack attract avoid award back ban bark base bathe behave bind
    blame bless blow boil borrow bounce bow breathe brew brush calculate camp capture care carve
    cease chase chat cheer clear click code combine comfort command comment communicate
    compare compete compile compose concern conclude conduct consider construct consume convert
    convince coordinate copy correct correspond cough crawl create criticise cry cure damage date deal declare
    decorate defeat defend define delay delete deliver demand deny depend derive design
    destroy determine develop differ direct disappear discover discuss dismiss display distribute dive
    divide drag dress drip drown dry earn edit elect eliminate emerge emit encourage enrol ensure
    equal equip establish estimate evaluate examine exceed exchange exclude execute exercise exist expand export
    express extend fetch fire fold force form format fulfil fund generate grant greet grind
    guarantee guess guide handle hate head heat hesitate hike house hunt identify ignore imagine
    implement imply import impress inform inherit inspect install intend introduce
    invent invest investigate iron issue judge label lack lay lift list load lock
    manufacture mark melt merge mind mix model monitor mount name note notice notify obey object
    observe obtain occupy occur operate oppose organise overlook overtake pack pause peel persuade
    phone place plot pour praise pray present preserve press pretend proceed propose
    protect prove provide publish pump punish purchase quote race rain rank rate react realise rebuild
    recall recognise recover recruit refer reflect regard regret regulate relate relax rely remain
    remind renew repeat represent request rescue research reserve reside resign resist resolve respond rest restart
    restore restrict result resume retain reveal review revise reward rinse rotate round rule
    rush satisfy scan schedule score scream seal secure seek select separate settle
    shape shave shine shoot shop shout shrink sink skip slip slow sneeze snore solve sort
    specify split spread squeeze stare state stick stir strengthen stretch structure struggle
    submit subscribe substitute succeed sum supervise supply surprise surround survive suspect
    suspend swap sweep swell target tell tend test thank tour trace track trade trigger trust
    twist type unlock update validate value vary view violate volunteer vote wander waste
    weaken welcome whisper widen wipe withdraw witness wonder wrap yield zip
    faces leads sits stands lies consists contains comprises totals amounts occupies spans stretches
    covers costs charges lasts runs burns consumes produces delivers handles processes stores
    born caches reads writes exposes returns accepts rejects emits polls retries expires times"""
)

# Counted people: forty guests and thirty people may be the same ones.
HUMANS = words(
    """people person soul inhabitant member participant employee attendee guest staff visitor resident inhabitant
    worker us man woman player singer student pupil applicant candidate customer passenger colleague
    engineer developer teammate listener reader subscriber sign registration"""
)

UNITS = """
length 0.001: mm, millimetre, millimeter
length 0.01: cm, centimetre, centimeter
length 1: m, metre, meter
length 1000: km, kilometre, kilometer
length 0.0254: inch, inches, in.
length 0.3048: ft, foot, feet
length 0.9144: yard, yd
length 1609.344: mile, miles, mi
mass 0.001: mg, milligram, milligramme
mass 1: g, gram, gramme, gr
mass 1000: kg, kilo, kilogram, kilogramme, kgs
mass 1000000: tonne, ton, t
mass 453.592: pound, lb, lbs
mass 28.3495: ounce, oz
mass 6350.29: stone
volume 0.001: ml, millilitre, milliliter
volume 0.01: cl, centilitre
volume 0.1: dl, decilitre
volume 1: l, litre, liter
volume 100: hectolitre
volume 1000: cubic metre, cubic meter, m3
volume 3.78541: gallon
volume 0.473176: pint
volume 0.24: cup
volume 0.015: tablespoon, tbsp
volume 0.005: teaspoon, tsp
area 1: square metre, square meter, m2, m², sqm
area 10000: hectare, ha
area 4046.86: acre
area 1000000: square kilometre
area 0.092903: square foot, square feet
duration 0.001: ms, millisecond
duration 1: s, sec, second
duration 60: min, minute, mins
duration 3600: h, hour, hr, hrs
duration 86400: day
duration 604800: week
duration 1209600: fortnight
duration 2629800: month
duration 31557600: year, yr, yrs
duration 315576000: decade
duration 3155760000: century
data 1: byte, bytes
data 1000: kb, kilobyte
data 1000000: mb, megabyte
data 1000000000: gb, gigabyte, gig, gigs
data 1000000000000: tb, terabyte
data 1000000000000000: pb, petabyte
data 1024: kib
data 1048576: mib
data 1073741824: gib
data 1099511627776: tib
rate 1000: kbit, kbps, kbit/s
rate 1000000: mbit, mbps, megabit, mbit/s
rate 1000000000: gbit, gbps, gigabit, gbit/s
euro 1: euro, eur, €
euro 0.01: cent
dollar 1: dollar, usd, $, buck
sterling 1: gbp, £, quid
franc 1: chf, franc
yen 1: yen, jpy, ¥
krona 1: krona, kronor, krone, kroner, sek, nok, dkk
energy 1: wh, watt hour
energy 1000: kwh, kilowatt hour
energy 1000000: mwh
calories 1: kcal, calorie
power 1: w, watt
power 1000: kw, kilowatt
power 735.5: hp, horsepower
voltage 1: v, volt
frequency 1: hz, hertz
frequency 1000: khz
frequency 1000000: mhz
frequency 1000000000: ghz
current 1: amp, ampere
pressure 1: bar
pressure 0.0689476: psi
speed 1: km/h, kmh, kph
speed 1.609344: mph
share 0.01: %, percent, per cent
temperature 1: celsius, centigrade, °, degree, °c
temperature 2: fahrenheit, °f
temperature 3: kelvin
count 12: dozen
"""

# Attributes of which one has a single value at a time, and the words that tell it.
ATTRIBUTES = """
home: live, lives, reside, moved to, move to, moved, relocated, settled, based in, home, hometown, residence, dwell, address, apartment in, flat in, living in
work: work for, works for, work at, works at, worked at, employed, employed by, employer, joined, hired by, job at, new job, employee, on the payroll of, works as, work as, job, earns, profession, occupation, trained as, living as, career, earns a living, makes a living, day job, trained
spouse: married, married to, wife, husband, spouse, partner, fiance, fiancee, engaged to, wed
name: called, named, name, goes by, nickname, address me, call me, answers to
birth: born, birthplace, comes from, native of
language: mother tongue, native language, first language, native speaker, grew up speaking, grew up with
school: attends, attend, attended, goes to school in, school, studies at, study at, studies, enrolled at, goes to school, student at, graduated from, degree
favourite: favourite, favorite, loves most, likes best, likes most, best liked, number one, top choice, love most, prefers, prefer
pet: dog, cat, pet, hamster, rabbit, parrot
car: drives, drive, car
phone: phone, smartphone, handset
store: stored, kept, keep, keeps, lies, hidden, located, lie, sits, store, saved, backed up, uploaded, puts, stashed, placed, put away, belongs, is to be found, found, hangs, stand, stands
tool: run, runs, runs on, written in, built with, built on, powered by, implemented, relies on, based on, hosted on, hosted, hosts, deployed on, deployed to, serves, served, migrated to, switched to, ported to, keeps, stores, managed, manage, formatted, linted, hashed, hash, tested, monitored, packaged, installed, application
lead: owner, owned by, manager, boss, leads, led by, lead, head, heads, chair, chairs, chaired, captain, president, director, responsible, in charge, maintained by, maintainer, coach, ceo, supervised by, supervisor
carer: surgeon, doctor, dentist, vet, therapist, gp, hairdresser, lawyer, accountant, teacher, tutor, trainer, landlord
meals: order, orders, ordered
"""

# Verbs that only lead to what is denied.
LIGHT_VERBS = words("own have need want use get be do make take keep give wish like")

# Nouns that say what a measure measures.
MEASURE_NOUNS = words(
    """capacity size length height weight depth width speed limit price cost total maximum minimum
    budget rate duration temperature distance amount area volume age salary rent fee term span"""
)

# Verbs that tell that something is not as it was.
REPLACEMENTS = """
switched, switch, replaced, moved, changed, change, swapped, traded, renamed, repainted, relocated, postponed,
rescheduled, migrated, upgraded, downgraded, brought forward, put off, pushed back, converted, took over, rewrote,
rewritten, rebuilt, transferred, handed over, revised, ported, exchanged, put back
"""

# The prepositions that lead to the value of an attribute.
VALUE_PREPOSITIONS = """
home: in, to, near, with
work: as, at, for, by
store: in, on, under, behind, at, to, with, inside, beside
school: at, in
lead: by
"""
