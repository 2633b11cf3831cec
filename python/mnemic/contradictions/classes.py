"""Kinds of values: of one kind, a thing usually has one, so two different ones disagree.

Each line is a name and its members; a bar joins spellings of one member. `SUBJECT_CLASSES` only
tell things apart (a mother from a father): they never make a contradiction, but prevent one.
"""

VALUE_CLASSES = """
colour: red, blue, green, yellow, black, white, grey|gray, brown, orange, purple|violet, pink, turquoise|teal, beige, silver, gold, terracotta, crimson|scarlet, ivory|cream, blonde|blond, brunette, burgundy|maroon, navy, olive, lilac, magenta
language: english, german, french, spanish, italian, portuguese, dutch, swedish, norwegian, danish, finnish, polish, czech, slovak, hungarian, romanian, bulgarian, greek, turkish, russian, ukrainian, arabic, hebrew, persian|farsi, hindi, urdu, bengali, tamil, chinese|mandarin, cantonese, japanese, korean, vietnamese, thai, indonesian, malay, swahili, croatian, serbian, slovenian, estonian, latvian, lithuanian, icelandic, irish, welsh, catalan, basque, latin, esperanto
feast: easter, christmas, pentecost|whitsun, halloween, thanksgiving, ramadan, passover, hanukkah, diwali, carnival
season: spring, summer, autumn|fall, winter
database: postgresql|postgres, mysql, mariadb, sqlite, oracle, mongodb|mongo, cassandra, redis, dynamodb, cockroachdb, duckdb, clickhouse, elasticsearch, couchdb, neo4j, firestore, bigquery, snowflake, redshift
programming: python, javascript, typescript, java, kotlin, scala, rust, golang|go, ruby, php, perl, swift, haskell, elixir, erlang, clojure, cobol, fortran, julia, dart, lua, zig
web framework: react, vue, angular, svelte, ember, jquery, solid, preact, htmx
server framework: django, flask, fastapi, rails, laravel, spring, express, nestjs, phoenix, starlette, tornado, symfony
operating system: linux, windows, macos, ubuntu, debian, fedora, arch, centos, alpine, freebsd, nixos, ios, android
cloud: aws|amazon, azure, gcp, heroku, hetzner, digitalocean, vercel, netlify, cloudflare, ovh, linode, render
editor: vim|neovim, emacs, vscode, pycharm, intellij, sublime, nano, helix, eclipse, xcode, zed
browser: firefox, chrome, safari, edge, opera, brave, vivaldi, chromium
package manager: npm, yarn, pnpm, bun, pip, poetry, conda, uv, pipenv, cargo, maven, gradle
continuous integration: jenkins, circleci, travis, teamcity, buildkite, drone, bamboo
code host: github, gitlab, bitbucket, gitea, codeberg, sourcehut
broker: kafka, rabbitmq, nats, sqs, pulsar, activemq, zeromq, celery
orchestration: kubernetes, nomad, swarm, ecs, mesos, openshift
web server: nginx, apache, caddy, traefik, haproxy, lighttpd, envoy, gunicorn, uvicorn
version control: git, mercurial, subversion|svn, perforce
hash function: bcrypt, argon2, scrypt, pbkdf2, md5, sha1, sha256, sha512, blake2, blake3
file format: csv, json, yaml, toml, xml, parquet, avro, protobuf, pdf, docx, xlsx, markdown, html, latex, ini
image format: png, jpeg|jpg, webp, gif, svg, tiff, bmp, avif
archive format: zip, gzip, tar, zstd, bzip2, lz4, brotli, snappy
protocol: http, https, grpc, websocket, mqtt, amqp, ftp, sftp, smtp, imap, rest, graphql, soap
text encoding: ascii, latin1, unicode
licence: mit, apache, gpl, lgpl, agpl, bsd, mpl
shell: bash, zsh, fish, powershell, tcsh
test runner: pytest, unittest, nose, jest, vitest, mocha, cypress, playwright, selenium, junit
monitoring: prometheus, grafana, datadog, zabbix, nagios, sentry, newrelic, splunk, kibana, honeycomb
chat: slack, teams, discord, mattermost, zoom, whatsapp, telegram, signal, skype, threema
tracker: jira, trello, asana, linear, notion, redmine, confluence
storage: s3, nas, dropbox, tape, floppy, usb
payment service: stripe, paypal, adyen, klarna, square, braintree
identity: okta, auth0, keycloak, ldap, saml
processor: intel, amd, arm, nvidia
phone: iphone, pixel, galaxy, nokia, fairphone, oneplus, xiaomi, huawei
computer: macbook, thinkpad, chromebook, surface, ipad
car: volvo, mazda, toyota, honda, ford, bmw, audi, mercedes, volkswagen|vw, skoda, fiat, renault, peugeot, citroen, opel, seat, kia, hyundai, nissan, tesla, subaru, suzuki, porsche, dacia, lexus, jeep, mini, saab
vehicle type: petrol, diesel, electric|hybrid
transport: car, bus, train, plane, bicycle|bike, tram, ferry, scooter, motorcycle|motorbike, taxi, foot, subway|metro|underground
profession: doctor|physician, nurse, teacher, lawyer|attorney, engineer, accountant, architect, carpenter|joiner, plumber, electrician, baker, butcher, chef|cook, waiter|waitress, farmer, gardener, journalist, writer|author, painter, musician, actor, actress, photographer, designer, programmer|developer, scientist, chemist, physicist, biologist, pharmacist, dentist, surgeon, vet|veterinarian, psychologist, therapist, judge, policeman|policewoman, firefighter, soldier, pilot, driver, hairdresser|barber, tailor, mechanic, librarian, translator, interpreter, secretary, banker, economist, consultant, salesman|saleswoman, cashier, professor, priest, pastor, sailor, fisherman, miner, florist, optician, midwife, paramedic, notary, watchmaker, goldsmith, beekeeper, bookkeeper
relation status: single, married, divorced, widowed, engaged
currency: euro, dollar, pound, franc, yen, krona, rupee
spelling: british, american
diet: vegan, vegetarian, carnivore, pescetarian, omnivore
religion: christian, catholic, protestant, muslim, jewish, hindu, buddhist, atheist
pet: cat, dog, rabbit, hamster, parrot, goldfish, tortoise, horse, budgie, canary, ferret, lizard, snake
breed: labrador, poodle, terrier, beagle, dachshund, collie, spaniel, retriever, husky, bulldog, siamese, persian, tabby
instrument: piano, guitar, violin, cello, flute, trumpet, clarinet, saxophone, drums, harp, oboe, trombone, organ, accordion, banjo, ukulele, viola
sport: football|soccer, tennis, basketball, volleyball, handball, swimming, rugby, hockey, golf, badminton, squash, cycling, rowing, boxing, judo, karate, skiing, climbing, cricket, baseball
drink: coffee, tea, water, beer, wine, juice, milk, cocoa, lemonade, cola, whisky|whiskey, rum, gin, vodka, champagne, cider
meal: breakfast, lunch, dinner|supper
fruit: apple, pear, banana, cherry, plum, peach, apricot, strawberry, raspberry, blueberry, lemon, grape, melon, mango, pineapple, kiwi, fig
vegetable: potato, tomato, carrot, onion, spinach, broccoli, cauliflower, cabbage, pea, cucumber, pepper, courgette|zucchini, aubergine|eggplant, leek
meat: beef, pork, lamb, chicken, turkey, duck, goose, veal, venison
cuisine: pizza, pasta, sushi, curry, burger, tacos, risotto, paella, ramen, lasagne|lasagna
dessert: chocolate, vanilla, caramel, hazelnut, pistachio, marzipan
genre: comedy, tragedy, thriller, horror, drama, western, romance, documentary
music: jazz, rock, pop, techno, blues, metal, punk, reggae, opera, folk, classical, rap
material: wood|wooden, metal, plastic, glass, stone, brick, concrete, leather, cotton, wool|woollen, silk, linen, steel, iron, aluminium, copper, marble, ceramic, bamboo, cardboard, oak, pine, beech, walnut
shape: round|circular, square, rectangular, oval, triangular, hexagonal
pattern: striped, checked|chequered, dotted, plain
country: germany, france, spain, italy, portugal, austria, switzerland, belgium, netherlands|holland, denmark, sweden, norway, finland, iceland, ireland, england, scotland, poland, hungary, romania, bulgaria, greece, turkey, croatia, serbia, slovenia, russia, ukraine, estonia, latvia, lithuania, usa|america, canada, mexico, brazil, argentina, chile, peru, japan, china, india, korea, vietnam, thailand, australia, egypt, morocco, kenya, nigeria
nationality: german, french, spanish, italian, portuguese, austrian, swiss, belgian, dutch, danish, swedish, norwegian, finnish, irish, english, scottish, polish, hungarian, greek, turkish, russian, american, canadian, mexican, brazilian, japanese, chinese, indian, korean, australian
zodiac: aries, taurus, gemini, cancer, leo, virgo, libra, scorpio, sagittarius, capricorn, aquarius, pisces
blood group: positive, negative
grade: excellent, satisfactory, sufficient
school subject: mathematics|maths, physics, chemistry, biology, history, geography, philosophy, economics, law, medicine, literature, psychology, sociology, theology, linguistics
pay method: cash, card, invoice, transfer, cheque|check
medium: email|mail, phone, letter, post, fax, sms, text
typeface: serif, sans, monospace
indentation: tab, space
log level: debug, info, warning, error, critical
style: camelcase, snakecase, kebabcase
room: kitchen, bedroom, bathroom, cellar|basement, attic|loft, garage, garden, balcony, hallway|corridor, office, study, terrace, pantry
container: drawer, cupboard|cabinet, shelf, safe, box, fridge, wardrobe, bag, desk, flowerpot, mailbox|letterbox, freezer, suitcase, wallet, toolbox
workplace: hospital, school, university, bank, bakery, library, restaurant, hotel, museum, factory, council, firm, agency, pharmacy, court, startup, newspaper, supermarket, theatre, shipyard, airline, insurer, brewery
graphics: vulkan, opengl, directx, webgl, webgpu
linter: ruff, flake8, pylint, eslint, biome, prettier, black
branch: main|master, trunk, develop
architecture: x86, arm64, riscv
template engine: jinja, mako, handlebars, mustache, pug
mapper: sqlalchemy, hibernate, prisma, peewee, sequelize
encoding of characters: utf8|utf, latin1, ascii, utf16, cp1252
queue: redis, sqs, pubsub
build tool: make|makefile, cmake, bazel, meson, ninja, webpack, vite, rollup, esbuild, gradle, maven, ant
provisioning: terraform, ansible, puppet, chef, pulumi, saltstack
container runtime: docker, podman, containerd, lxc
service manager: systemd, supervisord, cron, upstart
markup: markdown, restructuredtext|rst, asciidoc, latex, html
seasoning: salty, sweet, sour, bitter, spicy
house: flat|apartment, cottage, bungalow, villa, caravan, houseboat, dormitory
roof: thatch|thatched, tile|tiled, slate, iron, shingle
metal colour: gold|golden, silver, bronze
continent: europe, asia, africa, america, australia
"""

SUBJECT_CLASSES = """
relative: mother|mum|mom, father|dad, mother-in-law, father-in-law, sister-in-law, brother-in-law, stepmother, stepfather, mentor, sister, brother, aunt, uncle, cousin, grandmother|grandma|granny, grandfather|grandpa, son, daughter, nephew, niece, wife, husband, neighbour, friend, colleague, boss|manager, landlord, roommate|flatmate, sibling, twin, parents, employer, customer, assistant
age group: adult, child|kid, teenager, baby, toddler, senior, pensioner, student, infant
dimension: wide|width, deep|depth, long|length, tall|high|height, heavy|weight, diameter, radius, area, volume, age, speed, price, thick
environment: production|prod, staging, test, development|dev, local, sandbox, demo, preview
part of software: frontend, backend, server, client, database, mobile, desktop, worker, web, api, cache, endpoint, cluster, replica, library
page side: header, footer, sidebar
body part: arm, leg, hand, foot, knee, shoulder, elbow, eye, ear, hip, ankle, wrist, finger, toe, tooth, back, nose
body side: left, right, upper, lower
house part: door, window, roof, wall, floor, gate, ceiling, chimney, heating, lawn, fence
room kind: kitchen, bedroom, bathroom, cellar, attic, garage, garden, balcony, hallway, hall, livingroom, dining
furniture: table, chair, sofa, bed, lamp, desk, shelf, cupboard, wardrobe, bookcase, carpet, curtain, bench, stool
device: laptop, phone, tablet, printer, monitor, keyboard, camera, television|tv, router, headphones, mouse, projector, scanner
appliance: oven, fridge|refrigerator, dishwasher, freezer, kettle, toaster, washer, dryer, boiler
tenure: previous|former, present|current, next
age of thing: old, new
fullness: full, empty
day kind: weekday|working day|workday, weekend|day off, holiday
part of day: morning, afternoon, evening, night, lunchtime
season of year: spring, summer, autumn, winter
utility: rent, electricity, water, gas, internet, heating
number kind: invoice, serial, order, phone, account, customer, house, licence, passport, fax
event part: rehearsal, premiere, opening, ceremony, reception, party, wedding, meeting, exam, concert, workshop, conference, lecture
media: film|movie, novel|book, song|album, series, band, game, painting, magazine, podcast
favourite of: colour, season, city, dish, drink, animal, sport, author, band, film, novel, song
clothing: shirt, trousers, shoes, jacket, dress, hat, coat, socks, gloves, scarf, skirt
tier: basic, family, premium, pro, enterprise, standard, business, free
quarter side: inner, outer
line: left, middle, right
vehicle: car, bike, van, lorry|truck, motorcycle, boat, trailer
transfer: download, upload
limb of trip: outward, return, inbound, outbound, arrival, departure
sex: man, woman, boy, girl, male, female
access: read, write
memory kind: cpu, memory, disk, network, gpu
trip scope: domestic, international, continental
"""
