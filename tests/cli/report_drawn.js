// SPDX-License-Identifier: Apache-2.0
//
// What a browser has drawn of a report, for report_test.py: its charts, its legend, and which texts overlap.
"use strict";

function boxes(elements) {
  return [...elements].map(e => ({ text: e.textContent, ...e.getBoundingClientRect().toJSON() })).filter(b => b.width > 0);
}

function overlapping(all) {
  const touch = (a, b) => a.left < b.right - 0.5 && b.left < a.right - 0.5 && a.top < b.bottom - 0.5 && b.top < a.bottom - 0.5;
  return all.flatMap((a, i) => all.slice(i + 1).filter(b => touch(a, b)).map(b => `${a.text} | ${b.text}`));
}

setTimeout(() => {
  const drawn = [...document.querySelectorAll("figure")].map(figure => ({
    title: figure.querySelector("figcaption").textContent,
    lines: figure.querySelectorAll("path.line").length,
    pieces: [...figure.querySelectorAll("path.line")].map(p => p.getAttribute("d").split("M").length - 1).reduce((a, b) => a + b),
    crosses: figure.querySelectorAll(".cross").length,
    ticks: [...figure.querySelectorAll("svg > text[text-anchor=end]")].map(t => t.textContent),
  }));
  const words = boxes(document.querySelectorAll("figcaption, figure svg > text, nav > label, #runs label, td, th, h1"));
  const outside = boxes(document.querySelectorAll("figure svg > text")).filter(b => b.left < 0 || b.right > innerWidth + 1);
  const found = document.createElement("pre");
  found.id = "found";
  found.textContent = JSON.stringify({ failures, charts: drawn,
    legend: [...document.querySelectorAll("#runs label")].map(l => l.textContent),
    overlaps: [...overlapping(words), ...outside.map(b => `outside: ${b.text}`)] });
  document.body.append(found);
}, 1000);
