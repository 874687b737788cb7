// SPDX-License-Identifier: Apache-2.0
//
// The points of a line as a chart shows them: along the chosen axis, within the zoom, smoothed, and no more than there
// are pixels.
"use strict";

// How many samples a run had taken up to a step: between two corners as many in each step; null if it does not tell.
function samplesAt(corners, step) {
  if (!corners) return null;
  let at = corners.findIndex(([s]) => s >= step);
  if (at < 0) at = corners.length - 1;
  if (at === 0) return corners[0][1];
  const [s0, n0] = corners[at - 1], [s1, n1] = corners[at];
  return s1 === s0 ? n1 : n0 + (step - s0) * (n1 - n0) / (s1 - s0);
}

// Points {x, y, step}; y is null where it is not finite.
function pointsOf(source, run, axis) {
  const xs = axis === "time" ? source.times :
    axis === "samples" ? source.steps.map(step => samplesAt(run.samples, step)) : source.steps;
  return source.values.map((y, i) => ({ x: xs[i], y, step: source.steps[i] })).filter(p => p.x !== null);
}

// The exponential mean of the values so far, of which the first count in full; what is not finite is left out.
function smoothed(points, weight) {
  let mean = 0, count = 0;
  return points.map(p => {
    if (p.y === null) return p;
    mean = weight * mean + (1 - weight) * p.y;
    return { ...p, y: mean / (1 - weight ** ++count) };
  });
}

// Those from x0 to x1, and one more on each side, so that lines reach the edge.
function within(points, [x0, x1]) {
  let first = points.findIndex(p => p.x >= x0), last = points.findLastIndex(p => p.x <= x1);
  if (first < 0) first = points.length;
  return points.slice(Math.max(0, first - 1), last + 2);
}

function near(points, x) {
  return points.reduce((best, p) => Math.abs(p.x - x) < Math.abs(best.x - x) ? p : best);
}

// The path of points given in pixels. In each column of pixels the first, the lowest, the highest and the last are
// enough. A point that is null breaks the path; one between two of them becomes a dot.
function pathOf(points) {
  const out = [];
  let column = null, pen = "M", alone = null;
  const put = p => {
    out.push(pen + p.x.toFixed(1) + " " + p.y.toFixed(1));
    alone = pen === "M" ? p : null;
    pen = "L";
  };
  const flush = () => {
    if (!column) return;
    const { first, low, high, last } = column;
    column = null;
    [...new Set([first, low, high, last])].sort((a, b) => a.order - b.order).forEach(put);
  };
  const dot = () => { if (alone) out.push("h0"); alone = null; };
  points.forEach((p, order) => {
    if (p === null) { flush(); dot(); pen = "M"; return; }
    p = { ...p, order };
    const at = Math.floor(p.x);
    if (column && column.at !== at) flush();
    column ??= { at, first: p, low: p, high: p, last: p };
    if (p.y < column.low.y) column.low = p;
    if (p.y > column.high.y) column.high = p;
    column.last = p;
  });
  flush();
  dot();
  return out.join("");
}
