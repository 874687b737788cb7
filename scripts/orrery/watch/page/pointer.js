// SPDX-License-Identifier: Apache-2.0
//
// What the pointer does on a chart: over it, a line and the values there; dragged, a zoom; a double click goes back.
"use strict";

const tip = document.getElementById("tip");

const REACH = 20; // pixels beyond the end of a line within which its last value is told

// The value of a line that is nearest to the pointer; null where there is no line.
function under(chart, points, px) {
  const there = points.filter(p => p.y !== null);
  const ends = there.length ? [chart.x(there[0].x) - REACH, chart.x(there.at(-1).x) + REACH] : [0, -1];
  return px >= ends[0] && px <= ends[1] ? near(there, chart.unx(px)) : null;
}

function hoverTexts(chart, px) {
  const x = chart.unx(px);
  const found = chart.shown.map(s => ({ ...s, p: under(chart, s.points, px) })).filter(s => s.p).sort((a, b) => b.p.y - a.p.y);
  const at = exact(XKIND[chart.view.axis], found.length ? near(found.map(s => s.p), x).x : x);
  const rows = found.map(s => `<tr style="${colourOf(s.run)}"><td><i></i>${escaped(s.name)}</td>` +
    `<td>${exact(chart.kind, s.p.y)}</td><td>step ${s.p.step}</td></tr>`);
  return { found, html: `<b>${chart.view.axis} ${at}</b><table>${rows.join("")}</table>` };
}

// Beside the pointer, on the side that has room.
function placeTip(event) {
  tip.hidden = false;
  const { width, height } = tip.getBoundingClientRect();
  const left = event.clientX + 16 + width < innerWidth ? event.clientX + 16 : Math.max(0, event.clientX - 16 - width);
  tip.style.left = left + "px";
  tip.style.top = Math.max(0, Math.min(event.clientY + 12, innerHeight - height - 4)) + "px";
}

function followPointer(chart) {
  const { plot } = chart;
  let from = null;
  const pixel = event => Math.max(LEFT, Math.min(chart.width - RIGHT, event.clientX - plot.getBoundingClientRect().left));
  const marks = () => plot.querySelector(".pointer");
  const leave = () => { tip.hidden = true; if (marks()) marks().innerHTML = ""; };
  plot.addEventListener("pointermove", event => {
    if (!chart.shown) return;
    const px = pixel(event), { found, html } = hoverTexts(chart, px);
    const zoomed = from === null ? "" : `<rect class="zoom" x="${Math.min(from, px)}" y="${TOP}" width="${Math.abs(px - from)}" ` +
      `height="${HEIGHT - TOP - BOTTOM}"/>`;
    marks().innerHTML = `${zoomed}<line class="cursor" x1="${px}" x2="${px}" y1="${TOP}" y2="${HEIGHT - BOTTOM}"/>` +
      found.map(s => `<circle style="${colourOf(s.run)}" cx="${chart.x(s.p.x)}" cy="${chart.y(s.p.y)}" r="3.5"/>`).join("");
    tip.innerHTML = html;
    placeTip(event);
  });
  plot.addEventListener("pointerdown", event => {
    if (event.button !== 0 || !chart.shown) return;
    from = pixel(event);
    plot.setPointerCapture(event.pointerId);
  });
  plot.addEventListener("pointerup", event => {
    const to = pixel(event), begin = from;
    from = null;
    if (begin !== null && Math.abs(to - begin) > 5) chart.zoom([begin, to].sort((a, b) => a - b).map(chart.unx));
  });
  plot.addEventListener("pointerleave", () => { from = null; leave(); });
  plot.addEventListener("dblclick", () => chart.zoom(null));
}
