// Paths as rows of text with their lanes beside them. The text says all that the lanes show.
const offStates = new Set(), offKinds = new Set();
const STATES = ["open", "merged", "abandoned", "closed"];
const paths = data.paths.map(([id, state, column, parent, leavesAt, target], number) => ({ id, state, column, parent, leavesAt, target, number, rows: [] }));
const rows = data.rows.map(([path, what, text, id, kind, time, note], at) => ({
  at, path: paths[path], what, text, id, kind, time, note,
  folded: [paths[path].id, what === "begun" ? paths[path].state : "", text, id, kind < 0 ? "" : data.kinds[kind][0], time, note].join("\n").toLowerCase(),
}));
for (const row of rows) row.path.rows.push(row);
let words = "", chosen = null, hits = [], hitAt = -1, visible = [];
const ROUGH = 17;

const shown = row => !offStates.has(STATES.indexOf(row.path.state)) && !(row.kind >= 0 && offKinds.has(row.kind));
const colourOf = path => colourAt(path.number);

function item(row) {
  const element = make("li", "", row.what === "begun" ? "begin" : row.what);
  if (row.what === "begun") {
    const name = said(row.path.id, "name");
    element.append(name);
    row.name = name;
  } else if (row.what === "event") {
    element.append(said(row.id, "what"));
  }
  if (row.text) element.append(said(row.text, "what"));
  if (row.kind >= 0 && data.kinds[row.kind][0]) element.append(said(data.kinds[row.kind][0], "kind"));
  if (row.what !== "event" && row.id) element.append(said(row.id, "kind"));
  if (row.what === "begun") element.append(make("span", row.path.state, "kind"));
  else { row.name = said(row.path.id, "of"); element.append(row.name); }
  if (row.time) element.append(make("time", row.time));
  if (row.note) element.append(said(row.note, "note"));
  element.addEventListener("click", () => { if (!getSelection().toString()) choose(chosen === row.path ? null : row.path); });
  return element;
}

function arrange() {
  visible = rows.filter(shown);
  const gutter = Math.round(spacing() * data.columns + 12);
  for (const row of visible) {
    row.element ??= item(row);
    row.element.style.paddingLeft = gutter + "px";
    if (row.name) row.name.style.setProperty("--own", colourOf(row.path));
  }
  byId("rows").replaceChildren(...visible.map(row => row.element));
  mark();
  lanes();
}
// Many lanes share the room that a few would have.
const spacing = () => Math.max(2, Math.min(innerWidth > 760 ? 20 : 14, innerWidth * 0.36 / Math.max(1, data.columns)));

// Rows are as high as their texts; the lanes are drawn to where the rows have come to lie.
function lanes() {
  const svg = byId("lanes"), wide = spacing(), x = path => wide * (path.column + 0.5);
  const height = byId("rows").offsetHeight + byId("rows").offsetTop;
  let above = null;
  for (const row of rows) row.y = null;
  for (const row of visible) row.y = row.element.offsetTop + (row.what === "begun" ? 24 : ROUGH);
  // A row that is switched off stands for the one above it.
  for (const row of rows) { above = row.y ?? above; row.level = above; }
  svg.setAttribute("width", wide * data.columns);
  svg.setAttribute("height", height);
  for (const path of paths) {
    path.seen = path.rows.filter(row => row.y !== null);
    path.end = path.seen.length ? path.seen[path.seen.length - 1].y : null;
  }
  visible.forEach((row, place) => { row.next = visible[place + 1]?.y ?? row.y + 26; });
  for (const path of paths) joins(path);
  const drawings = [], marks = [];
  for (const path of paths) {
    if (!path.seen.length) continue;
    const colour = colourOf(path), faded = chosen && chosen !== path ? 0.25 : 1;
    const stroke = { fill: "none", stroke: colour, "stroke-width": Math.min(2.5, wide / 2), "stroke-linecap": "round", opacity: faded };
    const dashed = path.state === "abandoned" ? { "stroke-dasharray": "2 5" } : {};
    let d = `M${x(path)} ${path.seen[0].y}`;
    if (path.from) d = curve(x(path.from), path.leaves, x(path), Math.min(path.seen[0].y, path.leaves + 34)) + `L${x(path)} ${path.seen[0].y}`;
    drawings.push(drawn("path", { ...stroke, ...dashed, d: d + `L${x(path)} ${path.end}` }));
    if (path.into) drawings.push(drawn("path", { ...stroke, d: curve(x(path), path.closes, x(path.into), path.arrives) }));
    for (const row of path.seen) marks.push(...markOf(row, x(path), colour, faded));
  }
  svg.replaceChildren(...drawings, ...marks);
}
const curve = (x, y, tx, ty) => `M${x} ${y}C${x} ${y + (ty - y) * 0.7} ${tx} ${y + (ty - y) * 0.3} ${tx} ${ty}`;

// Where a path leaves another and leads into one; the other goes on at least to there.
function joins(path) {
  path.from = path.into = null;
  if (!path.seen.length) return;
  const parent = path.parent === null ? null : paths[path.parent], last = path.seen[path.seen.length - 1];
  if (parent?.seen.length && rows[path.leavesAt].level !== null && rows[path.leavesAt].level >= parent.seen[0].y) {
    path.from = parent;
    path.leaves = rows[path.leavesAt].level;
    parent.end = Math.max(parent.end, path.leaves);
  }
  if (path.target !== null && paths[path.target].seen.length && last.what === "merged") {
    path.into = paths[path.target];
    path.closes = last.y;
    path.arrives = last.next;
    path.into.end = Math.max(path.into.end, path.arrives);
  }
}

function markOf(row, at, colour, faded) {
  const paper = { fill: "var(--paper)", stroke: colour, "stroke-width": 2.5, opacity: faded };
  const cross = { stroke: "var(--alarm)", "stroke-width": 2.6, "stroke-linecap": "round", opacity: faded };
  if (row.what === "begun") return [drawn("rect", { x: at - 5, y: row.y - 5, width: 10, height: 10, rx: 2.5, fill: colour, opacity: faded })];
  if (row.what === "merged") return [drawn("circle", { cx: at, cy: row.y, r: 5, ...paper })];
  if (row.what === "compacted") return [drawn("path", { d: `M${at - 6} ${row.y - 3}H${at + 6}M${at - 6} ${row.y + 3}H${at + 6}`, ...paper })];
  if (row.what === "abandoned") return [
    drawn("circle", { cx: at, cy: row.y, r: 7.5, fill: "var(--paper)", opacity: 1 }),
    drawn("path", { d: `M${at - 5} ${row.y - 5}L${at + 5} ${row.y + 5}M${at + 5} ${row.y - 5}L${at - 5} ${row.y + 5}`, ...cross }),
  ];
  return [drawn("circle", { cx: at, cy: row.y, r: 4, fill: colour, opacity: faded, stroke: "var(--paper)", "stroke-width": 1 })];
}

function mark() {
  const found = new Set(hits);
  for (const row of visible) {
    row.element.classList.toggle("hit", found.has(row));
    row.element.classList.toggle("dim", Boolean(words && !found.has(row)) || Boolean(chosen && chosen !== row.path));
  }
}
function choose(path) {
  chosen = path;
  document.body.dataset.chosen = path ? path.id : "";
  mark();
  lanes();
}
const show = row => row.element?.scrollIntoView({ block: "center", behavior: calm.matches ? "auto" : "smooth" });

function find(text, move = true) {
  words = text.trim().toLowerCase();
  hits = words ? visible.filter(row => row.folded.includes(words)) : [];
  hitAt = -1;
  byId("found").textContent = words ? hits.length.toLocaleString("en") + " found" : "";
  document.body.dataset.found = words ? hits.length : "";
  mark();
  if (move && hits.length) show(hits[0]);
}
function next() {
  if (!hits.length) return;
  hitAt = (hitAt + 1) % hits.length;
  byId("found").textContent = `${hitAt + 1} of ${hits.length.toLocaleString("en")}`;
  show(hits[hitAt]);
}

function legend() {
  const place = byId("legend"), grey = () => getComputedStyle(root).getPropertyValue("--quiet");
  place.replaceChildren();
  const states = STATES.map(name => ({
    name, count: paths.filter(path => path.state === name).length, shape: name === "abandoned" ? "dashes" : "line", colour: grey,
  }));
  const there = states.map((entry, number) => [entry, number]).filter(([entry]) => entry.count);
  const off = { has: at => offStates.has(there[at][1]), add: at => offStates.add(there[at][1]), delete: at => offStates.delete(there[at][1]) };
  const changed = () => {
    if (chosen && offStates.has(STATES.indexOf(chosen.state))) choose(null);
    arrange(); find(words, false);
  };
  switches(place, "paths", there.map(([entry]) => entry), off, changed);
  switches(place, "events", data.kinds.map(([name, count]) => ({ name: name || "without a kind", count, shape: "circle", colour: grey })), offKinds, changed);
  place.append(make("p", "A square begins a path, a ring ends one that was merged, a cross one that was abandoned, two bars stand for a compaction.", "quiet"));
}
function start() {
  byId("counts").textContent = paths.length ? data.counts.join(", ") : data.empty;
  byId("more").open = innerWidth > 760 && paths.length < 40;
  const order = [...paths].sort((one, other) => one.rows[0].at - other.rows[0].at);
  for (const path of order) {
    const button = make("button");
    button.type = "button";
    button.append(said(path.id));
    button.addEventListener("click", () => { choose(path); show(path.rows[0]); });
    byId("jump").append(button);
  }
  startTheme(() => { legend(); arrange(); });
  const search = byId("search");
  let pause = 0;
  search.addEventListener("input", () => { clearTimeout(pause); pause = setTimeout(() => find(search.value), 120); });
  search.addEventListener("keydown", event => { if (event.key === "Enter") next(); });
  addEventListener("keydown", event => {
    if (event.key === "Escape") choose(null);
    if (event.key === "/" && !event.target.closest?.("input")) { event.preventDefault(); search.focus(); }
  });
  addEventListener("resize", arrange);
  const follow = () => {
    if (asked("find")) { search.value = asked("find"); find(search.value); }
    const path = asked("path") && paths.find(one => one.id === asked("path"));
    if (path) { choose(path); show(path.rows[0]); }
  };
  addEventListener("hashchange", follow);
  follow();
  Object.assign(document.body.dataset, { paths: paths.length, rows: rows.length, columns: data.columns, drawn: "true" });
}
document.body.classList.add("paths");
start();
