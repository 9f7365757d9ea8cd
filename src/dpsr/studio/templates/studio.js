"use strict";
(() => {
  const root = document.documentElement;
  const by = (id) => document.getElementById(id);

  /* Theme: follows the system until the button is used. */
  const button = by("theme");
  if (button) {
    const system = matchMedia("(prefers-color-scheme: dark)");
    const kept = sessionStorage.getItem("theme");
    if (kept) root.dataset.theme = kept;
    const isDark = () => (root.dataset.theme ? root.dataset.theme === "dark" : system.matches);
    const label = () => { button.textContent = isDark() ? "Light" : "Dark"; };
    button.setAttribute("aria-label", "Switch between light and dark");
    button.hidden = false;
    button.addEventListener("click", () => {
      root.dataset.theme = isDark() ? "light" : "dark";
      sessionStorage.setItem("theme", root.dataset.theme);
      label();
    });
    system.addEventListener("change", label);
    label();
  }

  /* Commands are copied by a button. */
  for (const copy of document.querySelectorAll(".copy")) {
    copy.hidden = false;
    copy.addEventListener("click", async () => {
      await navigator.clipboard.writeText(copy.parentElement.querySelector("code").textContent);
      copy.textContent = "Copied";
      setTimeout(() => { copy.textContent = "Copy"; }, 2000);
    });
  }

  /* A choice that changes what the page shows asks for the page again. */
  for (const field of document.querySelectorAll("[data-submit]")) {
    field.addEventListener("change", () => field.form.requestSubmit());
  }

  /* A scale by name fills in the scale. */
  for (const preset of document.querySelectorAll("input[name=preset]")) {
    preset.addEventListener("change", () => { by("scale").value = preset.value; });
  }

  /* A form is sent once. */
  const spend = by("spend");
  if (spend) spend.form.addEventListener("submit", () => { spend.disabled = true; });

  /* The slider: error, odds and what is left move together. Bounds round to the side that promises less. */
  const slider = by("slider");
  if (slider) {
    const rows = [...document.querySelectorAll("#steps tbody tr")].map((row) => ({
      text: row.dataset.epsilon, epsilon: Number(row.dataset.epsilon), x: Number(row.dataset.x), y: Number(row.dataset.y),
      error: Number(row.dataset.error), share: Number(row.dataset.share),
      factor: row.cells[1].textContent, guess: row.cells[2].textContent, people: row.dataset.people,
    }));
    const field = by("epsilon");
    const set = (id, text) => { const place = by(id); if (place) place.textContent = text; };
    const between = (value) => {
      if (value <= rows[0].epsilon) return { ...rows[0], exact: value === rows[0].epsilon };
      const place = rows.findIndex((row) => row.epsilon >= value);
      if (place < 0) return { ...rows[rows.length - 1], exact: false };
      const [a, b] = [rows[place - 1], rows[place]];
      if (b.epsilon === value) return { ...b, exact: true };
      const t = (Math.log(value) - Math.log(a.epsilon)) / (Math.log(b.epsilon) - Math.log(a.epsilon));
      const mix = (name) => a[name] + t * (b[name] - a[name]);
      return { x: mix("x"), y: mix("y"), error: mix("error"), share: mix("share"), people: a.people, exact: false };
    };
    const up = (number, digits) => (Math.ceil(number * 10 ** digits - 1e-9) / 10 ** digits).toFixed(digits);
    const show = () => {
      const value = Number(field.value);
      const good = value > 0 && Number.isFinite(value);
      set("epsilon-shown", good ? field.value : "…");
      if (!good) return;
      const here = between(value);
      const grown = Math.exp(value);
      const guess = 100 / (1 + Math.exp(-value));
      set("factor", here.exact ? here.factor : grown > 1e6 ? "more than a million" : up(grown, 2));
      set("guess", here.exact ? here.guess : guess > 99.99 ? "> 99.99 %" : up(guess, 2) + " %");
      set("error", here.error.toFixed(2));
      set("share", Math.round(100 * here.share) + " %");
      set("people", here.people);
      const left = by("left");
      if (left) {
        const after = Number(left.dataset.left) - value;
        set("after", after < -1e-9 ? "more than is left: the ledger will refuse it" : String(Math.floor(Math.max(after, 0) * 1e4 + 1e-6) / 1e4));
        by("after").classList.toggle("no", after < -1e-9);
      }
      const dot = by("dot");
      if (dot) {
        for (const mark of [dot, by("needle")]) mark.setAttribute("visibility", "visible");
        dot.setAttribute("cx", here.x);
        dot.setAttribute("cy", here.y);
        for (const end of ["x1", "x2"]) by("needle").setAttribute(end, here.x);
      }
    };
    const near = () => {
      const value = Number(field.value) || 1;
      const far = (row) => Math.abs(Math.log(row.epsilon / value));
      slider.value = rows.reduce((best, row, place) => (far(row) < far(rows[best]) ? place : best), 0);
      spoken();
    };
    const spoken = () => {
      const row = rows[Number(slider.value)];
      const error = row.error ? ", error " + row.error.toFixed(2) : "";
      slider.setAttribute("aria-valuetext", "epsilon " + row.text + error + ", a fifty-fifty guess becomes at most " + row.guess);
    };
    by("slide").hidden = false;
    slider.addEventListener("input", () => { field.value = rows[Number(slider.value)].text; spoken(); show(); });
    field.addEventListener("input", () => { near(); show(); });
    near();
    show();
  }

  /* A release in the making: its stages as they begin, and the page again when it is done. */
  const stages = by("stages");
  if (stages && stages.dataset.run) {
    const ask = async () => {
      try {
        const answer = await fetch("/run/state?id=" + stages.dataset.run, { cache: "no-store" });
        if (!answer.ok) { location.reload(); return; }
        const state = await answer.json();
        for (const words of state.stages.slice([...stages.children].filter((one) => one.dataset.own !== "no").length)) {
          const line = document.createElement("li");
          line.textContent = words;
          stages.append(line);
        }
        if (!state.running) { location.reload(); return; }
      } catch { /* the studio was stopped; the release goes on without it */ }
      setTimeout(ask, 700);
    };
    setTimeout(ask, 300);
  }
})();
