"""Measures the relevance floor of a memory: ``python -m benches.relevance``.

A store holds 200 facts of a personal assistant. Two hundred questions have an answer in it, two hundred have
none: 180 about other topics and 20 about something unknown of a known person. Printed for several floors:
how many answers are still shown, and for how many of the other questions nothing is shown. The numbers decide
``LexicalEmbedder.min_similarity``.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator

from chronomemory import Memory

#: Facts, each with a question that it answers.
FACTS = """
The deploy key lives in the vault under ops/deploy|where is the deploy key?
Staging runs on the machine called heron|which machine does staging run on?
The nightly backup starts at 02:30|when does the nightly backup start?
Our invoices are due within 14 days|within how many days are invoices due?
The office wifi password is on the whiteboard|where can I find the wifi password?
My cat is called Minka|what is my cat called?
I am allergic to peanuts|what am I allergic to?
My bicycle is a blue Gazelle|what kind of bicycle do I have?
The spare car key is in the kitchen drawer|where is the spare car key?
My passport expires in March 2031|when does my passport expire?
I take 20 mg of omeprazole every morning|which pills do I take in the morning?
The dentist appointment is on 4 May at nine|when is my appointment at the dentist?
My grandmother was born in Trondheim|where was my grandmother born?
The landlord is called Mr Osei|who is the landlord?
Rent is 940 euros a month|how much is the rent?
The garden hose is broken|what is wrong with the garden hose?
I like my coffee without sugar|do I want sugar in my coffee?
The red folder has the tax papers|which folder has the tax papers?
Our wedding was on 12 August 2017|what date was our wedding?
The plumber can come only on Fridays|on which days can the plumber come?
The boiler was serviced last October|when was the boiler serviced?
My shoe size is 43|what is my shoe size?
The piano needs tuning twice a year|how often must the piano be tuned?
I read mostly crime novels|what kind of novels do I read?
My favourite painter is Vermeer|who is my favourite painter?
The train to Basel leaves from platform 7|from which platform does the train to Basel leave?
The alarm code is changed every quarter|how often is the alarm code changed?
The printer on the second floor jams|which printer jams?
We order vegetables from the Huber farm|where do we order vegetables?
The basement floods after heavy rain|what happens in the basement after heavy rain?
The gym is closed on public holidays|is the gym closed on holidays?
I sold my motorcycle in 2019|when did I sell the motorcycle?
The library card is in my wallet|where is my library card?
My running goal is 40 kilometres a week|how many kilometres do I want to run a week?
The recipe for lentil soup came from Fatima|who gave me the recipe for lentil soup?
The projector needs an HDMI adapter|what does the projector need?
The contract with the cleaning company ends in June|when does the contract with the cleaning company end?
The roof was insulated with wood fibre|what was the roof insulated with?
My blood type is A negative|what is my blood type?
I speak Portuguese at an intermediate level|how well do I speak Portuguese?
The children's school starts at 8:10|when does school start for the children?
The tent is in the attic behind the skis|where did we put the tent?
The login to the tax portal needs a certificate|what do I need to log in to the tax portal?
The hotel in Porto has a parking garage|which hotel has a parking garage?
The customer Lindqvist pays by bank transfer|how does the customer Lindqvist pay?
The API rate limit is 600 requests a minute|what is the rate limit of the API?
Feature flags are stored in Consul|where are feature flags stored?
The mobile app crashes on old tablets|where does the mobile app crash?
Database migrations run before each release|when do database migrations run?
The search service was rewritten in Go|in which language was the search service rewritten?
The conference talk was rejected twice|how often was the conference talk rejected?
Our team retrospective is every second Tuesday|when is the team retrospective?
The monitoring dashboard is public inside the company|who can see the monitoring dashboard?
The GPU server is booked until Thursday|until when is the GPU server booked?
Error budgets are reviewed monthly|how often are error budgets reviewed?
The legacy importer drops empty columns|what does the legacy importer do with empty columns?
The translation of the manual is missing chapter 9|which chapter of the manual is not translated?
The domain renews automatically in November|when does the domain renew?
The intern starts on the first of September|when does the intern start?
The budget for training is 1,500 per person|what is the training budget per person?
I had a concussion in 2014|when did I have a concussion?
The physiotherapist recommends swimming|what does the physiotherapist recommend?
My glasses have a strength of minus 2.5|how strong are my glasses?
I cannot eat shellfish|can I eat shellfish?
The vet wants to see the dog again in three weeks|when does the vet want to see the dog?
Our dog is a rescued greyhound|what breed is our dog?
The aquarium light is on a timer|what switches the aquarium light?
The tomato plants need water every evening|when do the tomato plants need water?
We planted an apple tree for Noah|which tree did we plant for Noah?
The compost is collected on Wednesdays|when is the compost collected?
My brother works for the fire brigade|where does my brother work?
My sister is moving to Valencia|where is my sister moving?
Aunt Ingrid collects stamps|what does aunt Ingrid collect?
Grandpa's violin is from 1893|how old is grandpa's violin?
The neighbours upstairs are called Petrov|what are the neighbours upstairs called?
Uncle Tariq owns a bakery|what does uncle Tariq own?
My nephew plays the trombone|which instrument does my nephew play?
The babysitter costs 15 euros an hour|how much does the babysitter cost an hour?
The christening is in the chapel by the lake|where is the christening?
Our anniversary dinner is at Chez Louise|where is the anniversary dinner?
The flight to Reykjavik has a stop in Oslo|where does the flight to Reykjavik stop?
Travel insurance covers the whole family|who is covered by the travel insurance?
The visa for India takes ten working days|how long does the visa for India take?
The ferry was cancelled because of the storm|why was the ferry cancelled?
The campsite has no electricity|does the campsite have electricity?
The museum is free on the first Sunday of the month|when is the museum free?
The concert tickets are in my email|where are the concert tickets?
The chess club meets in the community centre|where does the chess club meet?
I want to learn to sail next summer|what do I want to learn next summer?
My half marathon time is 1:52|what is my half marathon time?
The climbing wall is 18 metres high|how high is the climbing wall?
The guitar strings were replaced in January|when were the guitar strings replaced?
The camera's battery lasts about 300 photos|how long does the camera battery last?
The novel's main character is a lighthouse keeper|who is the main character of the novel?
The podcast is recorded on Monday nights|when is the podcast recorded?
My thesis was about glacier melt|what was my thesis about?
The scholarship paid for one year in Kyoto|what did the scholarship pay for?
The lease of the copier is 79 a month|how much is the lease of the copier?
The first prototype overheated after an hour|what happened to the first prototype?
The supplier in Gdansk delivers within a week|how fast does the supplier in Gdansk deliver?
"""
PEOPLE = [
    "Priya",
    "Marek",
    "Chidi",
    "Solveig",
    "Tomas",
    "Yuki",
    "Leila",
    "Bruno",
    "Hana",
    "Oskar",
    "Nadia",
    "Kwame",
    "Ilse",
    "Rafael",
    "Mina",
    "Jonas",
    "Zeynep",
    "Piotr",
    "Amara",
    "Felix",
]
#: What is known of each person in turn: the fact, and the question.
KNOWN = [
    ("{name} lives in {value}", "where does {name} live?", ["Ghent", "Turku", "Split", "Lugano", "Bergen"]),
    (
        "{name}'s birthday is on {value}",
        "when is the birthday of {name}?",
        ["3-May", "9-June", "21-July", "2-March", "30-April"],
    ),
    (
        "{name} works as a {value}",
        "what does {name} work as?",
        ["welder", "nurse", "baker", "judge", "pilot"],
    ),
    (
        "{name} drives a {value}",
        "which car does {name} drive?",
        ["Volvo", "Skoda", "Fiat", "Dacia", "Toyota"],
    ),
    ("{name} prefers {value}", "what does {name} prefer?", ["tea", "chess", "jazz", "hiking", "sushi"]),
]
#: Questions about topics that no fact touches.
OTHER_QUESTIONS = (
    "how do {a} make {b}?",
    "why is {b} important for {a}?",
    "what is the history of {b}?",
    "who invented {b}, and did {a} know it?",
    "can you explain {b} to a child?",
    "tell me three facts about {a}",
)
OTHER_TOPICS = """
bees honey|whales songs|volcanoes ash|comets tails|romans aqueducts|pharaohs pyramids|spiders silk
beavers dams|lawyers treaties|senators laws|economists inflation|chemists polymers
physicists neutrinos|astronauts spacewalks|monks manuscripts|vikings longships|samurai swords
knights armour|bankers derivatives|brokers commodities|geologists quartz|botanists orchids
zoologists taxonomy|surgeons sutures|pharmacists vaccines|immunologists antibodies|linguists grammar
poets sonnets|composers symphonies|sculptors marble|architects cathedrals|engineers turbines
sailors knots|pirates treasure|explorers maps|cartographers projections|astronomers nebulae
mathematicians proofs|philosophers ethics|theologians doctrine|anthropologists rituals
archaeologists pottery|miners copper|smelters iron|weavers tapestries|tailors suits|cobblers boots
glassblowers vases|brewers ale|distillers whisky|cheesemakers rennet|butchers sausages
chocolatiers truffles|farmers wheat|shepherds wool|foresters timber|meteorologists hurricanes
oceanographers currents|seismologists earthquakes|biologists enzymes
"""
NEAR_QUESTIONS = "which university did {name} attend?"
FLOORS = (0.0, 0.1, 0.2, 0.3, 0.33, 0.34, 0.35, 0.4, 0.5)


def facts() -> Iterator[tuple[str, str]]:
    """Return facts, each with its question."""
    for line in FACTS.strip().splitlines():
        fact, _, question = line.partition("|")
        yield fact, question
    for at, name in enumerate(PEOPLE):
        for fact, question, values in KNOWN:
            yield fact.format(name=name, value=values[at % len(values)]), question.format(name=name)


def unanswered() -> Iterator[tuple[str, bool]]:
    """Return questions without an answer, and whether each is about a known person."""
    for at, pair in enumerate(OTHER_TOPICS.replace("\n", "|").strip("|").split("|")):
        a, b = pair.split()
        for question in OTHER_QUESTIONS[at % 2 :: 2]:
            yield question.format(a=a, b=b), False
    for name in PEOPLE:
        yield NEAR_QUESTIONS.format(name=name), True


def main() -> None:
    with tempfile.TemporaryDirectory() as folder, Memory(folder) as memory:
        known = list(facts())
        for fact, _ in known:
            memory.learn(fact)
        memory.consolidate()
        others = list(unanswered())
        print(f"{len(known)} facts and questions, {len(others)} questions without an answer")
        print(f"{'floor':>6}{'answers kept':>14}{'nothing shown':>15}{'other topics':>14}{'near misses':>13}")
        for floor in FLOORS:
            found = [
                fact in [block.content for block in memory.recall(question, top_k=10, min_similarity=floor)]
                for fact, question in known
            ]
            empty = [(not memory.recall(question, min_similarity=floor), near) for question, near in others]
            parts = [sum(is_empty for is_empty, _ in empty) / len(empty)]
            for near in (False, True):
                some = [is_empty for is_empty, is_near in empty if is_near == near]
                parts.append(sum(some) / len(some))
            print(
                f"{floor:6.2f}{sum(found) / len(found):14.1%}{parts[0]:15.1%}{parts[1]:14.1%}{parts[2]:13.1%}"
            )


if __name__ == "__main__":
    main()
