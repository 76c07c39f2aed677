// Numbers as a person reads them.

export function bytes(value: number): string {
  const units = ["B", "KiB", "MiB", "GiB", "TiB"];
  let unit = 0;
  let size = Math.abs(value);
  while (size >= 1024 && unit < units.length - 1) {
    size /= 1024;
    unit += 1;
  }
  return `${value < 0 ? "−" : ""}${digits(size, unit === 0)} ${units[unit]}`;
}

/** A time in microseconds. */
export function time(us: number): string {
  if (us < 1000) return `${digits(us, false)} µs`;
  if (us < 1e6) return `${digits(us / 1e3, false)} ms`;
  return `${digits(us / 1e6, false)} s`;
}

export function shape(sizes: number[] | null | undefined): string {
  return sizes ? (sizes.length ? sizes.join(" × ") : "scalar") : "";
}

export function count(value: number, one: string, many = `${one}s`): string {
  return `${value.toLocaleString("en")} ${value === 1 ? one : many}`;
}

function digits(value: number, whole: boolean): string {
  if (whole || value >= 100) return value.toFixed(0);
  return value.toFixed(value >= 10 ? 1 : 2).replace(/\.?0+$/, "");
}
