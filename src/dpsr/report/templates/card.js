"use strict";
(() => {
  const root = document.documentElement;

  /* Theme: follows the system until the button is used. */
  const button = document.getElementById("theme");
  const system = matchMedia("(prefers-color-scheme: dark)");
  const isDark = () => (root.dataset.theme ? root.dataset.theme === "dark" : system.matches);
  const label = () => { button.textContent = isDark() ? "Light" : "Dark"; };
  button.setAttribute("aria-label", "Switch between light and dark");
  button.hidden = false;
  button.addEventListener("click", () => { root.dataset.theme = isDark() ? "light" : "dark"; label(); });
  system.addEventListener("change", label);
  label();

  /* Odds: the bounds of Bayes' rule, rounded to the side that promises less. */
  const guess = document.getElementById("guess");
  if (guess) {
    const epsilon = Number(guess.dataset.epsilon);
    const prior = document.getElementById("prior");
    const set = (id, text) => { document.getElementById(id).textContent = text; };
    const atMost = (p) => {
      const n = Math.ceil(p * 10000);
      return n >= 10000 ? "> 99.99 %" : (n / 100).toFixed(2) + " %";
    };
    const update = () => {
      const p = Number(prior.value) / 100;
      const against = (1 - p) / p;
      const low = 1 / (1 + against * Math.exp(epsilon));
      const high = 1 / (1 + against * Math.exp(-epsilon));
      set("before", prior.value + " %");
      set("echo", prior.value + " %");
      set("low", (Math.floor(low * 10000) / 100).toFixed(2) + " %");
      set("high", atMost(high));
      const band = document.getElementById("band");
      band.setAttribute("x", 100 * low + "%");
      band.setAttribute("width", 100 * (high - low) + "%");
      for (const end of ["x1", "x2"]) document.getElementById("needle").setAttribute(end, prior.value + "%");
      prior.setAttribute("aria-valuetext", prior.value + " per cent");
    };
    prior.parentElement.hidden = false;
    prior.addEventListener("input", update);
    update();
  }

  /* Plots: the mark nearest to the pointer, or under the arrow keys, says what it is. */
  for (const plot of document.querySelectorAll(".plot")) {
    const readout = plot.querySelector(".readout");
    const marks = [...plot.querySelectorAll("[data-read]")];
    const rest = readout.textContent;
    const show = (mark) => {
      for (const other of marks) other.classList.toggle("on", other === mark);
      readout.textContent = mark ? mark.dataset.read : rest;
      readout.classList.toggle("live", Boolean(mark));
    };
    const focused = () => marks.find((mark) => mark === document.activeElement);
    const middle = (mark) => { const box = mark.getBoundingClientRect(); return (box.left + box.right) / 2; };
    const nearest = (x) => marks.reduce((a, b) => (Math.abs(middle(b) - x) < Math.abs(middle(a) - x) ? b : a));
    const svg = plot.querySelector("svg");
    for (const kind of ["pointermove", "pointerdown"]) svg.addEventListener(kind, (event) => show(nearest(event.clientX)));
    svg.addEventListener("pointerleave", () => show(focused()));
    marks.forEach((mark, place) => {
      mark.addEventListener("focus", () => show(mark));
      mark.addEventListener("blur", () => show(undefined));
      mark.addEventListener("keydown", (event) => {
        const to = { ArrowRight: place + 1, ArrowLeft: place - 1, Home: 0, End: marks.length - 1 }[event.key];
        if (to === undefined || !marks[to]) return;
        event.preventDefault();
        mark.setAttribute("tabindex", "-1");
        marks[to].setAttribute("tabindex", "0");
        marks[to].focus();
      });
    });
  }
})();
