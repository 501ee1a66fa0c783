// Figures as people read them. Only units and digits: the numbers themselves come from the program.

// Three significant digits, and all of a whole number below a thousand.
export function digits(value) {
  if (value === 0) return "0";
  const magnitude = Math.abs(value);
  if (magnitude >= 100) return value.toLocaleString("en", { maximumFractionDigits: 0 });
  return Number(value.toPrecision(3)).toString();
}

const kUnits = [[1e12, "T"], [1e9, "B"], [1e6, "M"], [1e3, "k"]];

// "8B", "124M".
export function count(value) {
  for (const [size, unit] of kUnits) {
    if (value >= size) return digits(value / size) + unit;
  }
  return digits(value);
}

// GiB and GB, one decimal where it says something: "119.2 GiB".
export function gib(bytes) {
  const value = bytes / 2 ** 30;
  return value >= 10 ? value.toFixed(1) : value.toFixed(2);
}

export function gb(bytes) {
  const value = bytes / 1e9;
  return value >= 10 ? value.toFixed(1) : value.toFixed(2);
}

// "1.2 ms", "3.4 s".
export function duration(milliseconds) {
  if (milliseconds === null || milliseconds === undefined) return "–";
  if (milliseconds >= 1000) return digits(milliseconds / 1000) + " s";
  if (milliseconds >= 1) return digits(milliseconds) + " ms";
  return digits(milliseconds * 1000) + " µs";
}

export function percent(share) {
  return share === null || share === undefined ? "–" : (100 * share).toFixed(0) + " %";
}
