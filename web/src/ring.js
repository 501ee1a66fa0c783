// The ring all-reduce's rounds, drawn: who holds which block, and how much of the sum is in it.

const kSvg = "http://www.w3.org/2000/svg";
const kMostRanks = 16;  // that can be told apart

function node(name, attributes, text) {
  const made = document.createElementNS(kSvg, name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  if (text !== undefined) made.textContent = text;
  return made;
}

// After `step` rounds on P ranks: for each rank and block how many leaves its copy has. In round s of
// the first P−1 rank r sends block r−s and adds what it receives; in the others whole sums go round.
export function heldAfter(step, ranks) {
  const held = Array.from({ length: ranks }, () => Array(ranks).fill(1));
  const wrap = (value) => ((value % ranks) + ranks) % ranks;
  for (let s = 0; s < step; ++s) {
    const before = held.map((row) => [...row]);
    for (let r = 0; r < ranks; ++r) {
      const left = wrap(r - 1);
      const scatters = s < ranks - 1;
      const block = wrap(left - (scatters ? s : s - ranks));
      held[r][block] = scatters ? before[r][block] + before[left][block] : before[left][block];
    }
  }
  return held;
}

export function shownRanks(ranks) {
  return Math.max(2, Math.min(ranks, kMostRanks));
}

export function drawRing(place, step, ranks) {
  const held = heldAfter(step, ranks);
  const cell = Math.max(12, Math.min(30, Math.floor(300 / ranks)));
  const left = 64;
  const width = left + ranks * cell + 4;
  const drawing = node("svg", { width, height: ranks * (cell + 4) + 24, viewBox: `0 0 ${width} ${ranks * (cell + 4) + 24}`,
    role: "img", "aria-label": `ring of ${ranks} ranks after ${step} steps` });
  for (let r = 0; r < ranks; ++r) {
    const y = r * (cell + 4);
    drawing.append(node("text", { x: 0, y: y + cell * 0.7, fill: "currentColor", "font-size": 12 }, `rank ${r}`));
    for (let b = 0; b < ranks; ++b) {
      const share = held[r][b] / ranks;
      drawing.append(node("rect", { x: left + b * cell, y, width: cell - 2, height: cell, class: "ring-empty" }));
      drawing.append(node("rect", { x: left + b * cell, y: y + cell * (1 - share), width: cell - 2, height: cell * share, class: "ring-held" }));
    }
  }
  drawing.append(node("text", { x: left, y: ranks * (cell + 4) + 14, fill: "currentColor", "font-size": 12 },
    "blocks, filled as far as they are summed"));
  place.replaceChildren(drawing);
}

export function ringText(step, ranks) {
  const rounds = 2 * (ranks - 1);
  const phase = step === 0 ? "start" : step <= ranks - 1 ? "reduce-scatter" : "all-gather";
  return `${step} of ${rounds} (${phase}); each rank has sent ${step}/${ranks} of X`;
}
