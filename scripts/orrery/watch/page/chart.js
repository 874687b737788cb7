// SPDX-License-Identifier: Apache-2.0
//
// One chart: a number of all shown runs along the chosen axis, with what the pointer asks for.
"use strict";

const HEIGHT = 230, LEFT = 66, RIGHT = 14, TOP = 8, BOTTOM = 26, FEW = 40;
const XKIND = { step: "count", samples: "count", time: "time" };

const escaped = text => String(text).replace(/[&<>"]/g, c => ({ "&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;" })[c]);
const colourOf = run => `--run: var(--r${run % 20})`;
// Runs whose colours are the same have other dashes.
const dashesOf = run => run < 20 ? "" : ` stroke-dasharray="${["7 3", "2 3", "9 3 2 3"][Math.floor(run / 20 - 1) % 3]}"`;

// The least and greatest of values; a little around a single one.
function extent(values, log) {
  let low = Infinity, high = -Infinity;
  for (const v of values) { low = Math.min(low, v); high = Math.max(high, v); }
  if (low > high) return log ? [0.1, 10] : [0, 1];
  if (low === high) return log ? [low / 2, low * 2] : [low - (Math.abs(low) / 10 || 1), high + (Math.abs(high) / 10 || 1)];
  return [low, high];
}

class Chart {
  constructor(chart, runs, view, zoom) {
    Object.assign(this, { chart, runs, view, zoom });
    this.kind = chart.bytes ? "bytes" : "number";
    this.box = document.createElement("figure");
    this.box.innerHTML = `<figcaption></figcaption><div class="plot"></div><p class="note"></p>`;
    this.box.firstChild.textContent = chart.title;
    this.plot = this.box.children[1];
    followPointer(this);
  }

  // What the view shows: {run, line, points, raw} of each run.
  collect() {
    const { axis, smoothing, hidden, logY, logX } = this.view;
    const good = p => !(logY && p.y <= 0) && !(logX && p.x <= 0);
    this.unseen = 0;
    this.shown = [];
    for (const line of this.chart.lines) {
      if (hidden.has(line.run)) continue;
      const run = this.runs[line.run], all = pointsOf(line, run, axis);
      const raw = all.map(p => p.y === null || good(p) ? p : (++this.unseen, { ...p, y: null, hidden: true }));
      const source = smoothing > 0 ? smoothed(pointsOf(line.means ?? line, run, axis), smoothing) : raw;
      const cut = points => this.view.range ? within(points, this.view.range) : points;
      this.shown.push({ run: line.run, name: run.name, raw: cut(raw), points: cut(source.map(p => good(p) ? p : { ...p, y: null })) });
    }
    this.missing = axis === "samples" ? this.chart.lines.filter(l => !this.runs[l.run].samples).map(l => this.runs[l.run].name) : [];
  }

  // Turns x and y into pixels.
  scale() {
    const { range, logX, logY } = this.view, w = this.width;
    const finite = this.shown.flatMap(s => [...s.raw, ...s.points]).filter(p => p.y !== null);
    const xs = this.shown.flatMap(s => s.raw).map(p => p.x).filter(x => !logX || x > 0);
    this.xs = range ?? extent(xs, logX);
    const inside = finite.filter(p => p.x >= this.xs[0] && p.x <= this.xs[1]);
    this.ys = extent((inside.length ? inside : finite).map(p => p.y), logY);
    const place = ([low, high], log, from, to) => {
      const f = log ? Math.log10 : v => v, a = f(low), b = f(high);
      return [v => from + (f(v) - a) / (b - a) * (to - from), p => {
        const v = a + (p - from) / (to - from) * (b - a);
        return log ? 10 ** v : v;
      }];
    };
    [this.x, this.unx] = place(this.xs, logX, LEFT, w - RIGHT);
    [this.y] = place(this.ys, logY, HEIGHT - BOTTOM - 6, TOP + 6);
  }

  grid() {
    const { axis, logX, logY } = this.view, w = this.width;
    const xTicks = (logX ? logTicks : linearTicks)(XKIND[axis], ...this.xs, Math.max(2, Math.floor((w - LEFT) / 65)));
    const yTicks = (logY ? logTicks : linearTicks)(this.kind, ...this.ys, 6);
    const lines = yTicks.map(t => `<line class="grid" x1="${LEFT}" x2="${w - RIGHT}" y1="${this.y(t.at)}" y2="${this.y(t.at)}"/>` +
      `<text x="${LEFT - 6}" y="${this.y(t.at) + 4}" text-anchor="end">${t.text}</text>`);
    return lines.join("") + xTicks.map(t => `<line class="grid" x1="${this.x(t.at)}" x2="${this.x(t.at)}" ` +
      `y1="${HEIGHT - BOTTOM}" y2="${HEIGHT - BOTTOM + 4}"/><text x="${Math.min(this.x(t.at), w - RIGHT - 3.5 * t.text.length)}" ` +
      `y="${HEIGHT - 8}" text-anchor="middle">${t.text}</text>`).join("");
  }

  // A cross where a value is not finite, one of those that would touch.
  crosses(shown) {
    let before = -Infinity, out = "";
    for (const p of shown.raw) {
      const x = this.x(p.x);
      if (p.y !== null || p.hidden || x - before < 8 || x < LEFT - 1 || x > this.width - RIGHT + 1) continue;
      before = x;
      out += `<text class="cross" x="${x}" y="${HEIGHT - BOTTOM - 2}" text-anchor="middle">×<title>` +
        `${escaped(shown.name)}, step ${p.step}: not finite</title></text>`;
    }
    return out;
  }

  curve(shown) {
    const pixels = points => points.map(p => p.y === null ? null : { x: this.x(p.x), y: this.y(p.y) });
    const path = (points, kind) => `<path class="${kind}"${dashesOf(shown.run)} d="${pathOf(pixels(points))}"/>`;
    const few = shown.points.length <= FEW ? pixels(shown.points).filter(p => p)
      .map(p => `<circle cx="${p.x}" cy="${p.y}" r="2.2"/>`).join("") : "";
    const raw = this.view.smoothing > 0 ? path(shown.raw, "raw") : "";
    return `<g style="${colourOf(shown.run)}"><g clip-path="url(#clip${this.number})">${raw}${path(shown.points, "line")}${few}</g>` +
      `${this.crosses(shown)}</g>`;
  }

  draw() {
    this.width = Math.max(240, this.plot.clientWidth);
    this.number ??= Chart.made = (Chart.made ?? 0) + 1;
    this.collect();
    this.scale();
    const w = this.width;
    this.plot.innerHTML = `<svg viewBox="0 0 ${w} ${HEIGHT}" width="${w}" height="${HEIGHT}" role="img" ` +
      `aria-label="${escaped(this.chart.title)}"><clipPath id="clip${this.number}"><rect x="${LEFT - 3}" y="0" ` +
      `width="${w - LEFT - RIGHT + 6}" height="${HEIGHT}"/></clipPath>${this.grid()}` +
      `${this.shown.map(s => this.curve(s)).join("")}<g class="pointer"></g></svg>`;
    this.box.lastChild.textContent = [
      this.unseen && `${this.unseen} points at or below 0 are not on a logarithmic axis. `,
      this.missing.length && `No samples are known of ${this.missing.join(", ")}.`].filter(Boolean).join("");
  }
}
