// What the page knows and does: which dots are shown, found and chosen, and what is said of them.
const LISTED = 300, NEIGHBOURS = 60;
const offKinds = new Set(), offLines = new Set();
let chosen = null, words = "", hits = [], hitAt = -1, untouched = true, queued = false, listed = LISTED;

const circles = data.circles.map(([x, y, r]) => ({ x, y, r, alone: true, dots: [] }));
const dots = data.dots.map(([id, kind, label, lines, facts, x, y, community, size]) => ({
  id, kind, label, lines, facts, x, y, community, size, home: circles[community], near: [], shape: shapeAt(kind),
  folded: (label + "\n" + id + "\n" + facts.map(fact => fact[1]).join("\n")).toLowerCase(),
}));
const lines = data.lines.map(([a, b, kind, weight, alarm]) => ({ a: dots[a], b: dots[b], kind, weight, alarm: Boolean(alarm) }));
for (const line of lines) {
  line.a.near.push({ line, dot: line.b, out: true });
  if (line.a !== line.b) line.b.near.push({ line, dot: line.a, out: false });
}
for (const dot of dots) dot.home.dots.push(dot);
const byWeight = [...dots].sort((one, other) => other.near.length - one.near.length || other.size - one.size || (one.id < other.id ? -1 : 1));
byWeight.forEach((dot, rank) => {
  dot.rank = rank;
  // The few with the most lines are named even in a crowd.
  dot.hub = rank < Math.max(1, dots.length / 100) && dot.near.length >= 8;
});
for (const circle of circles) {
  circle.alone = circle.dots.length < 3;
  // A community is named by the dot with the most lines.
  if (circle.alone) continue;
  circle.first = circle.dots.reduce((one, other) => one.rank < other.rank ? one : other);
  // Dots without lines are no community: they lie together because they are of one kind.
  circle.title = circle.first.near.length ? circle.first.lines : [data.kinds[circle.first.kind][2], `without ${data.lineNoun}s`].filter(Boolean);
}
// A community has the colour that is farthest from it.
circles.forEach((circle, number) => {
  const far = COLOURS.light.map((_, colour) => Math.min(Infinity, ...circles.slice(0, number)
    .filter(other => other.colour === colour)
    .map(other => Math.hypot(other.x - circle.x, other.y - circle.y) - other.r)));
  circle.colour = far.indexOf(Math.max(...far));
});
// One colour says nothing: with a single kind the communities have the colours.
let coloursBy = data.kinds.length > 1 || circles.length < 2 ? "kind" : "community";

const named = circle => circle.dots.length >= 6 && circle.title.length > 0;
const shown = dot => !offKinds.has(dot.kind);
const shownLine = line => !offLines.has(line.kind) && shown(line.a) && shown(line.b);
const nameOf = dot => dot.label || dot.id;
const lineColour = alarm => getComputedStyle(root).getPropertyValue(alarm ? "--alarm" : "--quiet");

function redraw() {
  if (queued) return;
  queued = true;
  requestAnimationFrame(() => {
    queued = false;
    document.body.dataset.labels = paint({ circles: visibleCircles, calm: !chosen && !words, dots: visibleDots, lines: visibleLines });
    document.body.dataset.zoom = view.zoom.toFixed(2);
  });
}

let visibleDots = [], visibleLines = [], visibleCircles = [];
// Decide anew what is seen, and how; the rest follows by itself.
function refresh() {
  const near = chosen && new Set([chosen, ...chosen.near.filter(({ line }) => shownLine(line)).map(({ dot }) => dot)]);
  const found = words ? new Set(hits) : null;
  visibleDots = dots.filter(shown);
  visibleLines = lines.filter(shownLine);
  visibleCircles = circles.filter(circle => circle.dots.some(shown));
  for (const dot of visibleDots) {
    dot.colour = colourAt(coloursBy === "kind" ? dot.kind : dot.home.colour);
    dot.chosen = dot === chosen;
    dot.hit = Boolean(found?.has(dot));
    dot.dim = found ? !found.has(dot) && !near?.has(dot) : Boolean(near) && !near.has(dot);
    dot.urge = dot.chosen ? 3 : dot.hit ? 2 : near?.has(dot) ? 1 : 0;
  }
  for (const line of visibleLines) {
    line.lit = Boolean(chosen) && (line.a === chosen || line.b === chosen);
    line.dim = !line.lit && (line.a.dim || line.b.dim || Boolean(chosen));
  }
  // What matters most is drawn last.
  visibleDots.sort((one, other) => one.urge - other.urge);
  redraw();
}

function legend() {
  const place = byId("legend");
  place.replaceChildren();
  const kinds = data.kinds.map(([name, count], number) => ({
    name: name || "without a kind", count, shape: shapeAt(number),
    colour: () => coloursBy === "kind" ? colourAt(number) : getComputedStyle(root).getPropertyValue("--quiet"),
  }));
  const ties = data.lineKinds.map(([name, count, alarm]) => ({
    name: name || "without a kind", count, shape: alarm ? "dashes" : "line", colour: () => lineColour(alarm),
  }));
  switches(place, data.dotNoun + "s", kinds, offKinds, changedKinds);
  switches(place, data.lineNoun + "s", ties, offLines, changedKinds);
  if (circles.filter(named).length > 1) {
    place.append(make("p", `From afar a group bears the name of its ${data.dotNoun} with the most ${data.lineNoun}s.`, "quiet"));
  }
}
function changedKinds() {
  if (chosen && !shown(chosen)) choose(null);
  find(words, false);
}

function row(dot, before = "") {
  const item = make("li"), button = make("button");
  button.type = "button";
  if (before) button.append(make("span", before + " ", "kind"));
  button.append(said(dot.lines.join(" ") || dot.id), " ", said(data.kinds[dot.kind][0], "kind"));
  button.addEventListener("click", () => choose(dot, true));
  item.append(button);
  return item;
}
function more(text, act) {
  const item = make("li"), button = make("button", text, "quiet");
  button.type = "button";
  button.addEventListener("click", act);
  item.append(button);
  return item;
}
function list() {
  const place = byId("list"), matching = words ? hits : byWeight.filter(shown);
  byId("listing").firstElementChild.textContent = words ? `Found, as a list (${matching.length})` : `All as a list (${matching.length})`;
  place.className = "rows";
  place.replaceChildren(...matching.slice(0, listed).map(dot => row(dot)));
  if (matching.length > listed) place.append(more(`Show more of ${matching.length.toLocaleString("en")}`, () => { listed += LISTED; list(); }));
}

function choose(dot, centre = false) {
  const about = byId("about");
  chosen = dot;
  about.hidden = !dot;
  about.replaceChildren();
  document.body.dataset.chosen = dot ? dot.id : "";
  if (dot) tell(about, dot);
  refresh();
  if (dot && centre) { untouched = false; glide(centring(dot)); }
}
function tell(about, dot) {
  const bar = make("div", "", "bar"), close = make("button", "×");
  close.type = "button";
  close.setAttribute("aria-label", "Close");
  close.addEventListener("click", () => { choose(null); canvas.focus(); });
  bar.append(said(nameOf(dot), "text"), close);
  const facts = make("dl");
  for (const [name, value] of [["id", dot.id], ["kind", data.kinds[dot.kind][0]], ...dot.facts]) {
    if (value === "") continue;
    const term = make("dt"), told = make("dd");
    term.append(said(name));
    told.append(said(value));
    facts.append(term, told);
  }
  const near = dot.near.filter(({ line }) => shownLine(line)).sort((one, other) => one.dot.rank - other.dot.rank);
  const rows = make("ul", "", "rows");
  const fill = count => {
    rows.replaceChildren(...near.slice(0, count).map(({ line, dot: other, out }) => {
      const way = data.directed ? (out ? "→ " : "← ") : "";
      return row(other, (way + (data.lineKinds[line.kind][0] || data.lineNoun)).trim());
    }));
    if (near.length > count) rows.append(more(`Show all ${near.length.toLocaleString("en")}`, () => fill(near.length)));
  };
  fill(NEIGHBOURS);
  about.append(bar, facts, make("h2", near.length ? counted(near.length, data.lineNoun) : `No ${data.lineNoun}s`), rows);
  about.scrollTop = 0;
}

function find(text, move = true) {
  words = text.trim().toLowerCase();
  hits = words ? byWeight.filter(dot => shown(dot) && dot.folded.includes(words)) : [];
  hitAt = -1;
  listed = LISTED;
  byId("found").textContent = words ? hits.length.toLocaleString("en") + " found" : "";
  document.body.dataset.found = words ? hits.length : "";
  list();
  refresh();
  if (move && hits.length) { untouched = false; glide(fitting(hits, 1.6)); }
  if (move && !words) all();
}
function next() {
  if (!hits.length) return;
  hitAt = (hitAt + 1) % hits.length;
  choose(hits[hitAt], true);
  byId("found").textContent = `${hitAt + 1} of ${hits.length.toLocaleString("en")}`;
}

// The picture lies on its side; a window that stands sees it turned.
let standing = false;
function turn() {
  if (standing === innerHeight > innerWidth * 1.1) return;
  standing = !standing;
  for (const one of [...dots, ...circles]) [one.x, one.y] = [one.y, one.x];
}

const closest = 2.4;
function all(gently = true) {
  untouched = true;
  if (!visibleDots.length) return;
  const target = fitting(visibleDots, closest);
  if (gently) glide(target); else { Object.assign(view, target); redraw(); }
}
function nearest(spot, reach) {
  let best = null, least = Infinity;
  for (const dot of visibleDots) {
    const far = Math.hypot(across(dot) - spot.x, down(dot) - spot.y) - radius(dot);
    if (far < least && far <= reach) { best = dot; least = far; }
  }
  return best;
}

function start() {
  const counts = [counted(dots.length, data.dotNoun), ...data.counts];
  if (data.leftOut) counts.push(`${counted(data.leftOut, data.dotNoun)} with fewer ${data.lineNoun}s left out`);
  if (data.loose) counts.push(`${counted(data.loose, data.lineNoun)} left out that lead to nothing here`);
  byId("counts").textContent = dots.length ? counts.join(", ") : data.empty;
  canvas.setAttribute("aria-label", `${data.title}: ${counts.join(", ")}`);
  const choice = byId("colours").querySelector("select");
  choice.value = coloursBy;
  choice.addEventListener("change", () => { coloursBy = choice.value; legend(); refresh(); });
  byId("more").open = innerWidth > 760;
  byId("more").addEventListener("toggle", () => { if (untouched) all(false); else redraw(); });
  startTheme(() => { legend(); refresh(); });
  startView(canvas, {
    changed: redraw, touched: () => { untouched = false; }, all,
    chosen: (spot, reach) => choose(nearest(spot, reach)),
    pointed: spot => {
      const dot = nearest(spot, 5);
      canvas.classList.toggle("pointing", Boolean(dot));
      canvas.title = dot ? dot.lines.join(" ") || dot.id : "";
    },
    middle: spot => choose(nearest(spot, Infinity), true),
    letGo: () => { choose(null); },
  });
  const search = byId("search");
  let pause = 0;
  search.addEventListener("input", () => { clearTimeout(pause); pause = setTimeout(() => find(search.value), 120); });
  search.addEventListener("keydown", event => { if (event.key === "Enter") next(); });
  addEventListener("resize", () => { turn(); if (untouched) all(false); else redraw(); });
  const follow = () => {
    if (asked("find")) { search.value = asked("find"); find(search.value); }
    if (asked("dot")) choose(dots.find(dot => dot.id === asked("dot")) ?? null, true);
  };
  addEventListener("hashchange", follow);
  turn();
  list();
  all(false);
  follow();
  document.body.dataset.dots = dots.length;
  document.body.dataset.lines = lines.length;
  document.body.dataset.communities = circles.length;
  document.body.dataset.drawn = "true";
}
document.body.classList.add("graph");
start();
