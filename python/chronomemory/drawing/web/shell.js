"use strict";
// What both pages need: the data, elements made of plain text, colours for two lights, marks that are told
// apart by shape as well.
const data = JSON.parse(document.getElementById("data").textContent);
const root = document.documentElement;
const byId = name => document.getElementById(name);

function make(tag, text = "", className = "") {
  const element = document.createElement(tag);
  // Only ever as text: what a label says is never read as markup.
  if (text) element.textContent = text;
  if (className) element.className = className;
  return element;
}
// A text of somebody else, set apart so that its direction is its own business.
const said = (text, className = "") => make("bdi", text, className);

function drawn(tag, attributes, ...children) {
  const element = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
  element.append(...children);
  return element;
}

const counted = (count, noun) => count.toLocaleString("en") + " " + noun + (count === 1 ? "" : "s");
const calm = matchMedia("(prefers-reduced-motion: reduce)");

// Blue, vermilion, green, pink, amber, sky and grey differ for the colour-blind, too.
const COLOURS = {
  light: ["#0072b2", "#d55e00", "#00896a", "#b5508b", "#a67c00", "#3a9bd4", "#5b6472"],
  dark: ["#4da3e0", "#ff8f57", "#2fc79a", "#e79cc6", "#e3b741", "#93d3f7", "#a9b3c1"],
};
const SHAPES = ["circle", "square", "diamond", "triangle", "hexagon"];
const colourAt = number => COLOURS[root.dataset.theme][number % COLOURS.light.length];
const shapeAt = number => SHAPES[number % SHAPES.length];
const CORNERS = {
  square: [[-.88, -.88], [.88, -.88], [.88, .88], [-.88, .88]],
  diamond: [[0, -1.25], [1.25, 0], [0, 1.25], [-1.25, 0]],
  triangle: [[0, -1.2], [1.15, .85], [-1.15, .85]],
  hexagon: [[1.1, 0], [.55, .95], [-.55, .95], [-1.1, 0], [-.55, -.95], [.55, -.95]],
};

function swatch(colour, shape) {
  const mark = shape === "line" || shape === "dashes"
    ? drawn("path", { d: "M1 7H21", stroke: colour, "stroke-width": 2.5, "stroke-dasharray": shape === "line" ? "none" : "5 3" })
    : shape === "circle" ? drawn("circle", { cx: 7, cy: 7, r: 5.5, fill: colour })
    : drawn("polygon", { points: CORNERS[shape].map(([x, y]) => (7 + 5 * x) + "," + (7 + 5 * y)).join(" "), fill: colour });
  const wide = shape === "line" || shape === "dashes" ? 22 : 14;
  return drawn("svg", { width: wide, height: 14, viewBox: `0 0 ${wide} 14`, "aria-hidden": "true" }, mark);
}

// Boxes that switch kinds on and off; each name is { name, count, colour(), shape }.
function switches(place, title, names, off, changed) {
  if (!names.length) return;
  const group = make("fieldset");
  group.append(make("legend", title));
  names.forEach((entry, number) => {
    const label = make("label"), box = make("input");
    box.type = "checkbox";
    box.checked = !off.has(number);
    box.addEventListener("change", () => { box.checked ? off.delete(number) : off.add(number); changed(); });
    label.append(box, swatch(entry.colour(), entry.shape), said(entry.name), make("span", entry.count.toLocaleString("en"), "count"));
    group.append(label);
  });
  place.append(group);
}

function startTheme(changed) {
  const system = matchMedia("(prefers-color-scheme: dark)"), button = byId("theme");
  let own = null;
  const apply = () => {
    root.dataset.theme = own ?? (system.matches ? "dark" : "light");
    button.textContent = root.dataset.theme === "dark" ? "☀ Light" : "☾ Dark";
    changed();
  };
  button.addEventListener("click", () => { own = root.dataset.theme === "dark" ? "light" : "dark"; apply(); });
  system.addEventListener("change", apply);
  apply();
}

// What the address asks for behind its #: find=words, and dot=, path= or event= with an id.
const asked = name => new URLSearchParams(location.hash.slice(1)).get(name) ?? "";
