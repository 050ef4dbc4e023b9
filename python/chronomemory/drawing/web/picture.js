// How dots, lines and labels are put on the canvas. What is dim, hidden or chosen is decided elsewhere.
const canvas = byId("picture"), pen = canvas.getContext("2d");
const LABEL_PIXELS = 12, LEADING_PIXELS = 14;
const FONT = "system-ui, sans-serif";

// Dots grow slower than the picture, so that they are seen from afar and leave room from near.
const radius = dot => Math.max(2.4, Math.min(22, dot.size * Math.pow(view.zoom, 0.62)));

function outline(shape, x, y, r) {
  pen.beginPath();
  if (shape === "circle") pen.arc(x, y, r, 0, 7);
  else {
    for (const [cx, cy] of CORNERS[shape]) pen.lineTo(x + cx * r, y + cy * r);
    pen.closePath();
  }
}

// What lies between the ground of two communities that touch.
const RIM = 12;

function drawCircles(circles, style) {
  for (const circle of circles) {
    if (circle.alone) continue;
    pen.beginPath();
    pen.arc(across(circle), down(circle), Math.max(1, (circle.r - RIM) * view.zoom), 0, 7);
    pen.globalAlpha = 0.045;
    pen.fillStyle = style.ink;
    pen.fill();
  }
  pen.globalAlpha = 1;
}

// Lines between two communities run together: both bend towards the middles that they have in common.
function trace(line) {
  const x = across(line.a), y = down(line.a), tx = across(line.b), ty = down(line.b);
  if (line.a === line.b) {
    const r = radius(line.a) + 5;
    pen.moveTo(x + r, y - r);
    pen.arc(x, y - r, r, 0, 7);
    return;
  }
  pen.moveTo(x, y);
  if (line.a.home === line.b.home) { pen.lineTo(tx, ty); return; }
  const pull = (dot, home) => [
    (dot.x + (home.x - dot.x) * 0.75) * view.zoom + view.x,
    (dot.y + (home.y - dot.y) * 0.75) * view.zoom + view.y,
  ];
  pen.bezierCurveTo(...pull(line.a, line.a.home), ...pull(line.b, line.b.home), tx, ty);
}

// The middles of both communities bound the bend.
function inSight({ a, b }) {
  const left = Math.min(a.x, b.x, a.home.x, b.home.x), right = Math.max(a.x, b.x, a.home.x, b.home.x);
  const top = Math.min(a.y, b.y, a.home.y, b.home.y), bottom = Math.max(a.y, b.y, a.home.y, b.home.y);
  return right * view.zoom + view.x > 0 && left * view.zoom + view.x < innerWidth
    && bottom * view.zoom + view.y > 0 && top * view.zoom + view.y < innerHeight;
}

// The lines of a dot with very many would be a blot.
const crowded = line => Math.max(line.a.near.length, line.b.near.length) > 60;

function drawLines(lines, style) {
  const batches = new Map();
  for (const line of lines) {
    if (!inSight(line)) continue;
    const far = line.a.home !== line.b.home;
    const tone = line.dim ? 0.07 : line.lit ? 0.95 : line.alarm ? 0.85 : far || crowded(line) ? 0.2 : 0.42;
    const wide = (0.6 + 1.3 * line.weight + (line.lit ? 0.8 : 0)) * Math.max(0.7, Math.min(1.5, Math.sqrt(view.zoom)));
    const key = [tone, Math.round(wide * 2) / 2, line.alarm, line.lit].join();
    if (!batches.has(key)) batches.set(key, { tone, wide, alarm: line.alarm, lit: line.lit, lines: [] });
    batches.get(key).lines.push(line);
  }
  const order = [...batches.values()].sort((one, other) => one.tone - other.tone);
  for (const batch of order) {
    pen.globalAlpha = batch.tone;
    pen.lineWidth = batch.wide;
    pen.strokeStyle = batch.alarm ? style.alarm : batch.lit ? style.strong : style.quiet;
    pen.setLineDash(batch.alarm ? [6, 4] : []);
    pen.beginPath();
    for (const line of batch.lines) trace(line);
    pen.stroke();
    pen.setLineDash([]);
    if (data.directed) for (const line of batch.lines) if (line.lit || view.zoom > 0.9) drawHead(line, pen.strokeStyle);
  }
  pen.globalAlpha = 1;
}

function drawHead(line, colour) {
  if (line.a === line.b) return;
  const x = across(line.b), y = down(line.b);
  const from = line.a.home === line.b.home ? line.a : {
    x: line.b.x + (line.b.home.x - line.b.x) * 0.75, y: line.b.y + (line.b.home.y - line.b.y) * 0.75,
  };
  const dx = x - across(from), dy = y - down(from), far = Math.hypot(dx, dy);
  const back = radius(line.b) + 1, long = 7;
  if (far < back + long) return;
  const ux = dx / far, uy = dy / far, tipX = x - ux * back, tipY = y - uy * back;
  pen.fillStyle = colour;
  pen.beginPath();
  pen.moveTo(tipX, tipY);
  pen.lineTo(tipX - ux * long - uy * 3.2, tipY - uy * long + ux * 3.2);
  pen.lineTo(tipX - ux * long + uy * 3.2, tipY - uy * long - ux * 3.2);
  pen.fill();
}

function drawDots(dots, style) {
  for (const dot of dots) {
    const x = across(dot), y = down(dot), r = radius(dot);
    if (x < -30 || y < -30 || x > innerWidth + 30 || y > innerHeight + 30) continue;
    pen.globalAlpha = dot.dim ? 0.16 : 1;
    outline(dot.shape, x, y, r);
    // A rim keeps dots apart from lines; from afar nobody sees it.
    if (r > 3) {
      pen.lineWidth = 1.5;
      pen.strokeStyle = style.paper;
      pen.stroke();
    }
    pen.fillStyle = dot.colour;
    pen.fill();
    if (dot.chosen || dot.hit) {
      pen.lineWidth = dot.chosen ? 3 : 2;
      pen.strokeStyle = dot.chosen ? style.strong : style.ink;
      outline("circle", x, y, r + 4);
      pen.stroke();
    }
  }
  pen.globalAlpha = 1;
}

// Which parts of the window are taken, looked up by cells.
class Ground {
  constructor() { this.cells = new Map(); }
  *touched(box) {
    for (let i = Math.floor(box.left / 64); i <= Math.floor(box.right / 64); i++)
      for (let j = Math.floor(box.top / 64); j <= Math.floor(box.bottom / 64); j++) yield i * 100003 + j;
  }
  take(box) {
    for (const cell of this.touched(box)) {
      if (!this.cells.has(cell)) this.cells.set(cell, []);
      this.cells.get(cell).push(box);
    }
  }
  free(box, owner) {
    for (const cell of this.touched(box))
      for (const other of this.cells.get(cell) ?? [])
        if (other.owner !== owner && box.left < other.right && other.left < box.right && box.top < other.bottom && other.top < box.bottom) return false;
    return true;
  }
}

const widths = { bold: new WeakMap(), plain: new WeakMap() };
function measure(lines, bold) {
  const known = bold ? widths.bold : widths.plain;
  if (!known.has(lines)) known.set(lines, Math.max(...lines.map(line => pen.measureText(line).width)));
  return known.get(lines);
}

// From afar a community bears a name above it, that of the dot with the most lines: all of it if there is room.
function titles(circles) {
  const found = [];
  if (circles.filter(named).length < 2) return found;
  for (const circle of circles) {
    const r = circle.r * view.zoom;
    if (!named(circle) || r < 18 || r > 260) continue;
    const [first, ...rest] = circle.title, whole = !rest.length || !circle.first.near.length;
    circle.short ??= whole ? circle.title : [first.replace(/[…\s]*$/, "…")];
    // What bears the name of a dot need not name the dot again.
    const dot = circle.title === circle.first.lines ? circle.first : circle;
    found.push({ dot, circle, r, texts: r < 64 ? [circle.short] : [circle.title, circle.short] });
  }
  return found.sort((one, other) => other.r - one.r);
}

const MOST_LABELS = 400, MOST_TRIED = 1500;
// Labels in the order of what they matter: each takes a place only if it covers no other label and no dot, but
// those of what is chosen or found, which may cover others' dots.
function drawLabels(scene, style) {
  const labels = new Ground(), marks = new Ground(), placed = [], told = new Set();
  for (const panel of [byId("panel"), byId("about"), byId("zoom")]) {
    const box = panel.getBoundingClientRect();
    if (box.width) labels.take({ left: box.left, right: box.right, top: box.top, bottom: box.bottom });
  }
  const here = scene.dots.filter(dot => {
    dot.sx = across(dot); dot.sy = down(dot); dot.sr = radius(dot);
    return dot.sx > 0 && dot.sy > 0 && dot.sx < innerWidth && dot.sy < innerHeight;
  });
  for (const dot of here) {
    if (!dot.dim) marks.take({ left: dot.sx - dot.sr, right: dot.sx + dot.sr, top: dot.sy - dot.sr, bottom: dot.sy + dot.sr, owner: dot });
  }
  const put = (dot, lines, spots, bold, insists) => {
    pen.font = (bold ? "600 " : "") + LABEL_PIXELS + "px " + FONT;
    const width = measure(lines, bold) + 4, height = lines.length * LEADING_PIXELS;
    let best = null;
    for (const [left, top] of spots(width, height)) {
      const box = { left, top, right: left + width, bottom: top + height, owner: dot };
      if (left < 2 || top < 2 || box.right > innerWidth - 2 || box.bottom > innerHeight - 2) continue;
      const wide = { left: left - 6, top: top - 3, right: box.right + 6, bottom: box.bottom + 3 };
      if (!labels.free(wide, dot)) continue;
      if (marks.free(box, dot)) { best = box; break; }
      if (insists) best ??= box;
    }
    if (!best) return false;
    labels.take(best);
    told.add(dot);
    placed.push({ lines, box: best, bold });
    return true;
  };
  const names = scene.calm ? titles(scene.circles) : [];
  for (const { dot, circle, r, texts } of names) {
    const x = across(circle), y = down(circle);
    const spots = (width, height) => [
      [x - width / 2, y - r - height + 8], [x - width / 2, y + r - 8],
      [x - r - width + 12, y - height / 2], [x + r - 12, y - height / 2],
    ];
    // All of a name where it covers nothing, else its first line; a large community is named in any case.
    if (texts.some(lines => put(dot, lines, spots, true, false))) continue;
    if (r > 40) put(dot, circle.short, spots, true, true);
  }
  const wanted = here.filter(dot => !dot.dim && dot.lines.length && !told.has(dot));
  wanted.sort((one, other) => other.urge - one.urge || one.rank - other.rank);
  for (const dot of wanted.slice(0, MOST_TRIED)) {
    if (placed.length >= MOST_LABELS) break;
    const gap = dot.sr + 3, hub = dot.hub && !names.length;
    put(dot, dot.lines, (width, height) => [
      [dot.sx - width / 2, dot.sy + gap], [dot.sx + gap, dot.sy - height / 2],
      [dot.sx - gap - width, dot.sy - height / 2], [dot.sx - width / 2, dot.sy - gap - height],
    ], dot.urge > 1 || hub, dot.urge > 0 || hub);
  }
  pen.textAlign = "center";
  pen.textBaseline = "middle";
  pen.lineJoin = "round";
  for (const { lines, box, bold } of placed) {
    pen.font = (bold ? "600 " : "") + LABEL_PIXELS + "px " + FONT;
    lines.forEach((line, number) => {
      const x = (box.left + box.right) / 2, y = box.top + LEADING_PIXELS * (number + 0.5);
      pen.strokeStyle = style.paper;
      pen.lineWidth = 4;
      pen.globalAlpha = 0.85;
      pen.strokeText(line, x, y);
      pen.globalAlpha = 1;
      pen.fillStyle = style.ink;
      pen.fillText(line, x, y);
    });
  }
  return placed.length;
}

function paint(scene) {
  const ratio = devicePixelRatio || 1, width = Math.round(innerWidth * ratio), height = Math.round(innerHeight * ratio);
  if (canvas.width !== width || canvas.height !== height) { canvas.width = width; canvas.height = height; }
  pen.setTransform(ratio, 0, 0, ratio, 0, 0);
  pen.clearRect(0, 0, innerWidth, innerHeight);
  const names = getComputedStyle(root), style = {};
  for (const name of ["ink", "paper", "quiet", "strong", "alarm"]) style[name] = names.getPropertyValue("--" + name).trim();
  drawCircles(scene.circles, style);
  drawLines(scene.lines, style);
  drawDots(scene.dots, style);
  return drawLabels(scene, style);
}
