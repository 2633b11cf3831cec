"""Words of opposite meaning: one axis a line, words of one end / words of the other.

A word may lie on several axes. Words of one end are near-synonyms, so that a pair of opposite
statements need not use the two words that a dictionary would set side by side. Phrases of several
words are allowed. A tilde marks the axes whose second end denies the first. What differs by a prefix alone (happy, unhappy) is found without this table.
"""

AXES = """
open, opened, reopened, reopens, unlocked / closed, shut, locked
open, unresolved, ongoing, outstanding / closed, resolved, fixed, solved, settled
open / shut down, closed down, gone out of business, out of business
lock / unlock
~ on, enabled, activated, turned on, switched on, active / off, disabled, deactivated, turned off, switched off, inactive
~ enable, activate, turn on, switch on / disable, deactivate, turn off, switch off
up, running, online, live, reachable / down, offline, crashed, unreachable, unavailable, out of service
back up, back online, restored, recovered / down, offline, broken, outage
~ active, valid, renewed, current / cancelled, expired, paused, suspended, ended, terminated, revoked, lapsed, frozen, on hold, invalid
~ subscribed, subscription, subscribe, member, membership, signed up, enrolled / cancelled, unsubscribed, cancel, unsubscribe, left, resigned, dropped out, signed off
renew / cancel, terminate, let lapse
~ done, finished, complete, completed, resolved, fixed, closed, over, ready, wrapped up, accomplished / pending, in progress, underway, under way, ongoing, unfinished, incomplete, outstanding, to do, half done, still missing, still open, not started, half finished, works on, working on, still to come, yet to
finish, complete / begin, started, start
~ sent, mailed, delivered, shipped, arrived, handed in, submitted, posted, dispatched, handed over / missing, pending, outstanding, in transit, unsent, waiting, awaiting, lost, late, overdue, delayed, on the way, yet to arrive, still to come, draft, on its way
~ approved, accepted, signed, granted, confirmed, signed off, merged, green light / rejected, refused, denied, declined, turned down, pending, waiting, awaiting, under review, vetoed, unsigned, dismissed, blocked, waiting list
~ approve, accept, agree, grant, confirm / reject, refuse, deny, decline, veto, turn down, disagree, contradict
~ confirmed, definite, certain, settled, fixed / tentative, provisional, uncertain, undecided, cancelled, open, called off, unclear
~ planned, scheduled, going ahead, takes place, on schedule / cancelled, called off, dropped, scrapped, abandoned, on ice
published, released, public, launched, announced, generally available, went live, gone live / draft, unpublished, unreleased, private, withdrawn, in beta, secret, confidential
deployed, rolled out, shipped, released / rolled back, reverted, withdrawn, undeployed, on hold
merged / reverted, conflicted, unmerged, closed unmerged
~ paid, settled, repaid, paid off, received the money / owe, unpaid, outstanding, overdue, due, in debt, reminder, owed
paid / free, free of charge, for free, gratis, costs nothing
~ solved, fixed, repaired, works again, mended, patched, working, works, intact, fine again, in order / broken, faulty, drips, leaks, leaking, out of order, defective, stuck, damaged, cracked, out of use, crashes, fails, buggy, in pieces, needs repair, jams
~ passed, succeeded, successful, pass, succeed, green, works / failed, fail, failing, failure, red, unsuccessful, broken, flunked
win, won, victory, beat / lose, lost, defeat, beaten
~ available, in stock, vacant, free, unoccupied, left / unavailable, sold out, out of stock, taken, occupied, booked, fully booked, gone, sold, reserved, used up, ran out, run out, rented out, booked up, let
for sale, on the market / sold, off the market
hired, employed, found a job, got a job, found work, has a job, working / unemployed, looking for a job, looking for work, out of work, jobless, laid off, fired, job hunting, between jobs, made redundant
works for, works at, joined, employed by, still works / left, quit, resigned, fired, laid off, retired, handed in notice, gave notice, retire, resign, let go
hire, employ, appoint / fire, dismiss, lay off, sack
retired, pensioner, draws a pension / working, works, employed
vacancy, vacant, position open / filled, hired
married, wife, husband, spouse, wed / single, divorced, unmarried, widowed, bachelor, separated, never married
together, flatmates, flatmate, roommates, roommate, partner, girlfriend, boyfriend, in a relationship, couple, engaged / single, broke up, split up, separated, alone, apart, parted, no partner
pregnant, expecting a baby, expects a baby / gave birth, had her baby, had a baby, baby was born
alive, lives, living / dead, died, passed away, deceased
healthy, well, recovered, fit, cured, better, discharged, back at work, back on his feet, back on her feet / ill, sick, in hospital, unwell, injured, has the flu, flu, fever, has a cold, a cold, cough, migraine, in bed, down with, hospital, sick leave, in a cast, broken
awake, up / asleep, sleeping, in bed
at home, home, back, returned / away, abroad, gone, travelling, out of town, on leave
indoors, inside / outdoors, outside
~ present, attending, attend, joining, join, coming, come along, takes part, take part, participates, participate, come / absent, missing, skip, skipping, staying away, miss, stays away, stay home, stays home
in the office, on site, on-site, at the office, in person / from home, remote, remotely, work from home, home office, online, by video
arrive, come, enter, land / leave, depart, go, exit, take off, go away
stay, remain, keep / leave, move out, move away, go, quit
~ keep, kept, retain, preserve, saved / delete, remove, throw away, discard, erase, drop, get rid of, abandon, gave away, sold, deleted, removed, wipe
~ add, include, insert, attach, contain / remove, exclude, delete, drop, omit, leave out, detach, skip, strip
~ with / without
install, deploy / uninstall, remove
buy, bought, purchase / sell, sold
borrow / lend, return
lent, lost, missing / returned, found, back, recovered, turned up, got back
send, give / receive, get
push / pull
import / export
upload / download
create, build, construct, set up / destroy, demolish, tear down, delete, dismantle
increase, rise, rose, risen, grow, grew, raise, climb, gain, went up, gone up, goes up, sold more, higher, up on / decrease, fall, fell, fallen, shrink, drop, reduce, decline, lower, cut, sink, lose, went down, gone down, goes down, sold less
expand, extend, widen, lengthen / shrink, shorten, narrow, reduce, contract
improve, improved, better, get better / worsen, deteriorate, worse, get worse, decline
accelerate, speed up / slow down, brake, delay
more, most / less, fewer, least
many, lots of, plenty of, much, numerous / few, little, hardly any, scarce
always, every time, constantly, without fail, no exceptions, no exception / only occasionally, from time to time
often, frequently, regularly, usually, most days / once in a while
already / not yet, yet to
early, earlier, ahead of time, ahead of schedule, punctual, punctually, on time / late, later, delayed, behind schedule, overdue, behind, too late
before, prior to, ahead of / after, following, afterwards
first, initial, beginning, start, starting, begin / last, final, end, ending
older, elder, old, aged / younger, young, junior
old, used, second-hand, second hand, ancient / new, brand-new, brand new, modern
new, beginner, novice, newcomer / experienced, veteran, expert, seasoned
permanent, indefinite, unlimited / temporary, interim, limited, fixed-term, provisional
~ allowed, permitted, legal, may, allow, permit, let, lets, welcome, tolerated, okay, ok, can / forbidden, banned, prohibited, forbid, ban, prohibit, illegal, off limits, not permitted, refused, must not, may not
mandatory, compulsory, obligatory, required, must, necessary, need, needed, needs, has to, have to, require, essential / optional, voluntary, unnecessary, superfluous, needless, up to you, not required
safe, harmless, drinkable, secure / dangerous, unsafe, poisonous, toxic, risky, hazardous, harmful, insecure, contaminated
edible / inedible, poisonous
~ true, correct, right, accurate / false, wrong, incorrect, mistaken, untrue, inaccurate
easy, simple, effortless, straightforward, child's play / hard, difficult, tough, complicated, tricky, challenging, demanding, over the head
cheap, cheaper, inexpensive, affordable, bargain / expensive, dear, costly, pricey, more expensive, overpriced, unaffordable
fast, quick, faster, quicker, rapid, swift, snappy / slow, slower, sluggish, laggy
loud, noisy, noise, deafening / quiet, silent, peaceful, calm, quieter, soundless
hot, warm, heated, boiling / cold, cool, chilly, freezing, unheated, icy
wet, damp, rainy, moist, rain / dry, arid, drought
sunny, clear / cloudy, overcast, rainy, foggy
bright, light, sunny / dark, gloomy, dim
light / heavy
dark mode, dark theme, dark, dark background / light mode, light theme, light, light background, bright
big, large, huge, spacious, bigger, larger, enormous, roomy / small, tiny, little, smaller, cramped, compact
tall, high, taller, higher / short, low, shorter, lower
long, lengthy, detailed, longer, extensive, in detail, at length, thorough, verbose / short, brief, concise, terse, shorter, succinct, to the point, in a nutshell
wide, broad / narrow
thick, fat / thin, slim
deep / shallow
full, packed, crowded, filled / empty, vacant, deserted, drained, blank
clean, tidy, spotless, neat / dirty, messy, filthy, cluttered, untidy
strong, powerful / weak, feeble
hard, firm / soft, tender
rough / smooth
sharp / blunt, dull
sweet, sugary / sour, bitter, salty, unsweetened
spicy, hot / mild, bland
fresh, new / stale, rotten, spoiled, off, mouldy
raw, uncooked / boiled, fried, roasted
rich, wealthy / poor, broke
~ happy, glad, pleased, satisfied, content, delighted, cheerful, thrilled / unhappy, sad, dissatisfied, disappointed, upset, miserable, discontented, annoyed, frustrated, angry, displeased
calm, relaxed, at ease / nervous, anxious, stressed, tense, worried, panicky
brave, fearless, confident / afraid, scared, fear, fears, frightened, terrified, timid, phobia
interesting, exciting, gripping, fascinating / boring, dull, tedious
~ good, great, excellent, wonderful, superb, fine, fantastic, positive, tasty, delicious / bad, poor, terrible, awful, horrible, dreadful, lousy, negative, disgusting
~ love, like, enjoy, adore, fond of, keen on, loves, favourite, fan of, is into, delight in, crazy about, appreciate, welcome, looks forward to, passionate about, cannot get enough of, finds wonderful, relish / hate, dislike, detest, loathe, unbearable, intolerable, awful, boring, horrible, annoy, annoying, annoyed by, sick of, can not stand, cannot stand, can not bear, despise, object to, torture, tired of, bored by, fed up with, undrinkable, inedible, disgusting, avoid, avoids, put off by, has no time for, turn up nose
~ want, wants, wish, wishes, would like, ask for, asked for, please, insist on / refuse, reject, decline, opt out, opted out
for, in favour of, supports, support, endorse / against, opposed to, opposes, oppose, objects
vegan, vegetarian, plant-based, meatless / meat, steak, beef, pork, lamb, chicken, bacon, sausage, sausages, ham, burger, burgers, roast, omnivore, carnivore, turkey, ribs, schnitzel
vegan, plant-based, lactose intolerant, dairy-free / cheese, eggs, milk, butter, yoghurt, cream, egg
teetotaller, sober, teetotal, no alcohol, abstinent / drinks wine, drinks beer, wine, beer, whisky, whiskey, vodka, gin, cocktail, cocktails, drunk
allergic, allergy, intolerant, intolerance, cannot eat / eats, tolerates, no trouble, eat, enjoys, loves, no allergies, not allergic
smokes, smoker, cigarettes / non-smoker, quit smoking, gave up smoking, stopped smoking
morning person, early bird, early riser, up at dawn / night owl, late riser, sleeps in, sleeps late, stays up late
introvert, shy, reserved / extrovert, outgoing, sociable
~ trust, believe, rely on / distrust, doubt, mistrust, suspect
~ remember, recall, memorised / forget, forgot, forgotten
~ know, knows, familiar with / ignorant of, unfamiliar with, unaware of, has no idea
understand / misunderstand
right, right-handed, on the right, right-hand / left, left-handed, on the left, left-hand
above, over, upstairs, top, upper, on top / below, under, beneath, downstairs, bottom, lower, underneath
north, northern / south, southern
east, eastern / west, western
front, in front / back, rear, behind
near, close, nearby, next to, around the corner / far, distant, remote, far away
together, jointly, shared, share, in pairs / alone, separately, apart, on my own, on his own, on her own, by himself, by herself, solo, single
same, identical, equal / different, distinct, unequal
public, external / private, internal, confidential
blocked, closed, jammed / clear, free, open, passable
looking for, searching for, seeking, in search of / found, hired, bought, picked, chose, signed up
rare, medium / well done
armed / disarmed
internal, in-house / external, outsourced
local, locally, on premises, on-premises, self-hosted / remote, in the cloud, hosted, cloud
automatic, automatically, automated / manual, manually, by hand
synchronous, blocking / asynchronous, non-blocking
sync / async
static / dynamic
strict / lenient, loose, relaxed
encrypted / plain text, plaintext, unencrypted, in the clear
compressed / uncompressed
stable, robust / unstable, flaky, shaky, experimental
deterministic / random
ascending / descending
horizontal / vertical
minimum, at least, minimal / maximum, at most, maximal
read-only, immutable / writable, mutable, editable
~ recommended, encouraged, best practice / discouraged, deprecated, obsolete, advised against
~ supported, maintained / unsupported, deprecated, dropped support, end of life, abandoned, discontinued
tabs / spaces
prose, paragraphs, flowing text, running text, full sentences, continuous text / bullet, bullets, bullet points, bulleted, lists, list, table
formal, formally, polite / informal, informally, casual, colloquial, casually
guilty / innocent
profit, profitable, in the black, surplus / loss, in the red, deficit, loss-making
employed / self-employed, freelance, freelancer
full-time, full time / part-time, part time
owns, own /  rents, rent, leases, leased
odd / even
success / failure
strength, strengths, good points, what is good / weakness, weaknesses, flaws, weak points, faults
advantage, benefit / disadvantage, drawback
supply / demand
dawn, sunrise / dusk, sunset
aisle / window
inside / outside
plus / minus
hidden, invisible, concealed, hide / visible, shown, displayed, show
loose / tight
flat, level / steep, hilly, bumpy
straight / curved, crooked, curly
lucky, fortunate / unlucky, unfortunate
awake / tired, exhausted, sleepy
hungry, starving / full, sated
fluent, fluently, perfect, native speaker / broken, halting, few words, hardly speaks
deaf / hearing
wearing glasses, needs glasses / perfect eyesight
beard, bearded / clean-shaven, shaved, shaven
has hair, long hair / bald, short hair
vaccinated / unvaccinated
insured / uninsured
guaranteed, under warranty, covered / warranty expired, warranty ran out, out of warranty, warranty is over, ran out, expired
tested, covered by tests / untested
documented / undocumented
rural, countryside, in the country / urban, in the city, downtown
friend, friends, ally / enemy, enemies, rival
lazy, idle / hardworking, diligent, industrious, busy
generous / stingy, mean, miserly
polite, courteous / rude, impolite
patient / impatient
careful, cautious, prudent / careless, reckless, rash
modern, up to date, up-to-date, contemporary / old-fashioned, outdated, antiquated
ripe / unripe, green
transparent, see-through / opaque
domestic, native / foreign, imported
amateur, hobby / professional
optimistic, optimist, hopeful / pessimistic, pessimist, hopeless
active / passive
abstract / concrete
encourage, recommend, advise / discourage, advise against, warn against, warns against
praise, compliment / criticise, complain, complains, complaint
majority / minority
income, earnings / expenses, spending
deposit, pay in / withdraw
ascend, climb / descend
freeze, frozen / melt, thaw, thawed
float / sink
tighten / loosen
pack / unpack
connect, connected, plugged in / disconnect, disconnected, unplugged
follow / unfollow
mute, muted / unmute, unmuted
load / unload
mount / unmount
comfortable, cosy / uncomfortable
convenient, handy / inconvenient, awkward
popular / unpopular
reliable, dependable / unreliable, flaky
natural / artificial, synthetic
whole, complete, entire / partial, incomplete
organised, orderly, tidy / chaotic, disorganised, messy
useful, helpful / useless, pointless
talkative, chatty / quiet, taciturn, silent
home-made, homemade, self-made / shop-bought, store-bought
handwritten / typed, printed
digital, electronic / analogue, on paper, printed out
indoor / outdoor
furnished / unfurnished
ground floor / top floor, attic
unlimited, limitless, uncapped / limited, capped, restricted
strengthen, reinforce / weaken, undermine
appear, show up / disappear, vanish
accept, tolerate / refuse, reject
attack / defend
combine, merge, unite, join / split, separate, divide
hire, recruit / lay off, fire
visible / hidden
asleep / wide awake
relaxing, restful / stressful, exhausting
refreshing / tiring
tasty, delicious, yummy / tasteless, bland, disgusting
beautiful, pretty, lovely / ugly, hideous
smart, clever, intelligent / stupid, dumb, foolish
honest, truthful / dishonest, lying
loyal, faithful / disloyal, unfaithful
calm, smooth / rough, stormy, choppy
successful, thriving, booming / unsuccessful, struggling, bankrupt
peace / war
guilty, to blame / innocent, not to blame
voluntary, volunteer / paid
sequential, sequentially, one after the other, serial / parallel, in parallel, concurrently
lazily, on demand / eagerly, at startup, upfront
mutable / immutable
server-side / client-side
open source, open-source / proprietary, closed source
monolith, monolithic / microservices
case-sensitive / case-insensitive
signed / unsigned
verbose / quiet
upgraded / downgraded
opt-in / opt-out
metric / imperial
still going, still running, still on, continues / ended, over, finished, stopped
opt in, opted in / opt out, opted out
"""

# Prefixes that turn a word into its opposite, where both are words of the two texts.
OPPOSING_PREFIXES = ("un", "in", "im", "il", "ir", "dis", "non", "mis")
