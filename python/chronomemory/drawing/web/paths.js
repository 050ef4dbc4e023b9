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
  const spacing = Math.max(5, Math.min(innerWidth > 760 ? 20 : 14, innerWidth * 0.36 / Math.max(1, data.columns)));
  const gutter = Math.round(spacing * data.columns + 12);
  for (const row of visible) {
    row.element ??= item(row);
    row.element.style.paddingLeft = gutter + "px";
    if (row.name) row.name.style.setProperty("--own", colourOf(row.path));
  }
  byId("rows").replaceChildren(...visible.map(row => row.element));
  mark();
  lanes(spacing, gutter);
}

// Rows are as high as their texts; the lanes are drawn to where the rows have come to lie.
function lanes(spacing, gutter) {
  const svg = byId("lanes"), top = byId("rows").offsetTop;
  for (const row of rows) row.y = null;
  visible.forEach((row, place) => { row.place = place; });
  for (const row of visible) row.y = row.element.offsetTop + (row.what === "begun" ? 24 : ROUGH);
  const height = byId("rows").offsetHeight + top;
  svg.setAttribute("width", gutter);
  svg.setAttribute("height", height);
  svg.replaceChildren();
  const x = path => spacing * (path.column + 0.5);
  const marks = [];
  for (const path of paths) {
    const own = path.rows.filter(row => row.y !== null);
    if (!own.length) continue;
    const colour = colourOf(path), faded = (chosen && chosen !== path) ? 0.25 : 1;
    const stroke = { fill: "none", stroke: colour, "stroke-width": 2.5, "stroke-linecap": "round", opacity: faded };
    const dashed = path.state === "abandoned" ? { "stroke-dasharray": "2 5" } : {};
    const first = own[0], last = own[own.length - 1];
    const from = path.parent === null ? null : rows[path.leavesAt];
    // A parent's row that is switched off: the curve begins at the last one above it that is seen.
    const begin = from && paths[path.parent].rows.filter(row => row.y !== null && row.at <= path.leavesAt).pop();
    let d = `M${x(path)} ${first.y}`;
    if (begin) {
      const bend = Math.min(28, (first.y - begin.y) * 0.9);
      d = `M${x(paths[path.parent])} ${begin.y}C${x(paths[path.parent])} ${begin.y + bend * 0.7} ${x(path)} ${begin.y + bend * 0.3} ${x(path)} ${begin.y + bend}L${x(path)} ${first.y}`;
    }
    svg.append(drawn("path", { ...stroke, ...dashed, d: d + `L${x(path)} ${last.y}` }));
    if (path.target !== null && last.what === "merged") merge(svg, path, last, x, stroke);
    for (const row of own) marks.push([row, x(path), colour, faded]);
  }
  for (const [row, at, colour, faded] of marks) svg.append(...markOf(row, at, colour, faded));
}
function merge(svg, path, last, x, stroke) {
  const target = paths[path.target], own = target.rows.filter(row => row.y !== null);
  const next = visible[last.place + 1], end = next ? next.y : last.y + 26;
  if (!own.length) return;
  svg.append(drawn("path", { ...stroke, d: `M${x(path)} ${last.y}C${x(path)} ${last.y + (end - last.y) * 0.7} ${x(target)} ${last.y + (end - last.y) * 0.3} ${x(target)} ${end}` }));
  const lowest = own[own.length - 1].y;
  // Nothing came after the merge: the lane goes on to where it was taken in.
  if (lowest < end) svg.append(drawn("path", { ...stroke, stroke: colourOf(target), d: `M${x(target)} ${lowest}L${x(target)} ${end}` }));
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
  arrange();
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
