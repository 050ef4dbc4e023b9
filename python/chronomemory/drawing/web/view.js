// Where the picture is seen from: moved and zoomed by mouse, fingers and keys.
const view = { x: 0, y: 0, zoom: 1 };
const NEAREST = 8, FARTHEST = 0.02;
let seen = () => {}, gliding = 0;

const across = dot => dot.x * view.zoom + view.x;
const down = dot => dot.y * view.zoom + view.y;
const bounded = zoom => Math.max(FARTHEST, Math.min(NEAREST, zoom));

function zoomAt(x, y, factor) {
  const zoom = bounded(view.zoom * factor);
  view.x = x - (x - view.x) * zoom / view.zoom;
  view.y = y - (y - view.y) * zoom / view.zoom;
  view.zoom = zoom;
  seen();
}

// The part of the window that no panel covers.
function freeArea() {
  const panel = byId("panel").getBoundingClientRect(), about = byId("about").getBoundingClientRect();
  const area = { left: 0, top: 0, right: innerWidth, bottom: innerHeight };
  if (panel.width < innerWidth * 0.7) area.left = panel.right; else area.top = panel.bottom;
  if (about.width > 0 && about.width < innerWidth * 0.7) area.right = about.left;
  else if (about.width > 0) area.bottom = about.top;
  // A panel over most of a small window: what is behind it is as good as any other place.
  if (area.bottom - area.top < 120) { area.top = 0; area.bottom = innerHeight; }
  return area;
}

function glide(target) {
  cancelAnimationFrame(gliding);
  if (calm.matches) { Object.assign(view, target); seen(); return; }
  const from = { ...view }, begun = performance.now();
  const step = now => {
    const part = Math.max(0, Math.min(1, (now - begun) / 280)), eased = 1 - (1 - part) ** 3;
    for (const name of ["x", "y", "zoom"]) view[name] = from[name] + (target[name] - from[name]) * eased;
    seen();
    if (part < 1) gliding = requestAnimationFrame(step);
  };
  gliding = requestAnimationFrame(step);
}

// The view in which these dots fill the free part of the window.
function fitting(dots, closest) {
  const area = freeArea(), width = area.right - area.left, height = area.bottom - area.top;
  let left = Infinity, right = -Infinity, top = Infinity, bottom = -Infinity;
  for (const { x, y } of dots) {
    left = Math.min(left, x); right = Math.max(right, x);
    top = Math.min(top, y); bottom = Math.max(bottom, y);
  }
  const rim = Math.min(64, width * 0.12, height * 0.1);
  const zoom = bounded(Math.min(closest, (width - 2 * rim) / (right - left || 1), (height - 2 * rim) / (bottom - top || 1)));
  return {
    zoom,
    x: area.left + width / 2 - zoom * (left + right) / 2,
    y: area.top + height / 2 - zoom * (top + bottom) / 2,
  };
}

// The view with one dot in the middle, no nearer than need be.
function centring(dot) {
  const area = freeArea(), zoom = Math.max(view.zoom, 1.1);
  return { zoom, x: (area.left + area.right) / 2 - zoom * dot.x, y: (area.top + area.bottom) / 2 - zoom * dot.y };
}

function startView(canvas, { changed, touched, chosen, pointed, all, middle, letGo }) {
  seen = changed;
  const fingers = new Map();
  let moved = 0;
  const here = event => ({ x: event.clientX, y: event.clientY });
  const spread = () => {
    const [one, other] = [...fingers.values()];
    return { far: Math.hypot(one.x - other.x, one.y - other.y), x: (one.x + other.x) / 2, y: (one.y + other.y) / 2 };
  };
  canvas.addEventListener("pointerdown", event => {
    cancelAnimationFrame(gliding);
    canvas.setPointerCapture(event.pointerId);
    fingers.set(event.pointerId, here(event));
    moved = fingers.size > 1 ? Infinity : 0;
  });
  canvas.addEventListener("pointermove", event => {
    const before = fingers.get(event.pointerId);
    if (!before) { pointed(here(event)); return; }
    const pinch = fingers.size === 2 ? spread() : null, now = here(event);
    fingers.set(event.pointerId, now);
    if (pinch) {
      const after = spread();
      view.x += after.x - pinch.x;
      view.y += after.y - pinch.y;
      zoomAt(after.x, after.y, after.far / (pinch.far || 1));
    } else if (fingers.size === 1) {
      moved += Math.hypot(now.x - before.x, now.y - before.y);
      // A finger trembles, and a click is no move.
      if (moved > 5) { view.x += now.x - before.x; view.y += now.y - before.y; touched(); changed(); }
    }
  });
  const lifted = event => {
    const was = fingers.get(event.pointerId);
    fingers.delete(event.pointerId);
    if (event.type === "pointerup" && was && moved <= 5) chosen(was, event.pointerType === "mouse" ? 5 : 16);
  };
  canvas.addEventListener("pointerup", lifted);
  canvas.addEventListener("pointercancel", lifted);
  canvas.addEventListener("wheel", event => {
    event.preventDefault();
    cancelAnimationFrame(gliding);
    touched();
    const unit = event.deltaMode === 1 ? 16 : event.deltaMode === 2 ? 200 : 1;
    zoomAt(event.clientX, event.clientY, Math.exp(-Math.max(-120, Math.min(120, event.deltaY * unit)) / 300));
  }, { passive: false });
  const centre = () => { const area = freeArea(); return { x: (area.left + area.right) / 2, y: (area.top + area.bottom) / 2 }; };
  const zoomed = factor => { touched(); zoomAt(centre().x, centre().y, factor); };
  const shifted = (x, y) => { touched(); view.x += x; view.y += y; changed(); };
  const KEYS = {
    ArrowLeft: () => shifted(60, 0), ArrowRight: () => shifted(-60, 0), ArrowUp: () => shifted(0, 60), ArrowDown: () => shifted(0, -60),
    "+": () => zoomed(1.3), "=": () => zoomed(1.3), "-": () => zoomed(1 / 1.3), 0: all, Home: all, Enter: () => middle(centre()), " ": () => middle(centre()),
  };
  canvas.addEventListener("keydown", event => {
    if (event.ctrlKey || event.metaKey || event.altKey || !Object.hasOwn(KEYS, event.key)) return;
    event.preventDefault();
    KEYS[event.key]();
  });
  addEventListener("keydown", event => {
    if (event.key === "Escape") letGo();
    if (event.key === "/" && !event.target.closest?.("input, select, textarea")) { event.preventDefault(); byId("search").focus(); }
  });
  for (const button of byId("zoom").children) {
    button.addEventListener("click", () => Number(button.dataset.zoom) ? zoomed(Number(button.dataset.zoom)) : all());
  }
}
