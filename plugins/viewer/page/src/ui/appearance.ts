// Dark mode and text size: the system's preference, until the user changes it.

import { useEffect, useLayoutEffect, useState } from "preact/hooks";

function kept(key: string): string | null {
  try {
    return localStorage.getItem(`plugrad-viewer-${key}`);
  } catch {
    return null; // pages from disk may have no storage
  }
}

function keep(key: string, value: string): void {
  try {
    localStorage.setItem(`plugrad-viewer-${key}`, value);
  } catch {
    // then it holds for this visit
  }
}

export function useAppearance() {
  const system = window.matchMedia("(prefers-color-scheme: dark)");
  const [dark, setDark] = useState(kept("theme") ? kept("theme") === "dark" : system.matches);
  const [small, setSmall] = useState(kept("text") === "small");
  // Before the graph reads the colours.
  useLayoutEffect(() => {
    document.documentElement.dataset.theme = dark ? "dark" : "light";
  }, [dark]);
  useEffect(() => {
    document.documentElement.dataset.text = small ? "small" : "normal";
  }, [small]);
  useEffect(() => {
    const changed = () => kept("theme") ?? setDark(system.matches);
    system.addEventListener("change", changed);
    return () => system.removeEventListener("change", changed);
  }, []);
  return {
    dark,
    small,
    toggleDark: () => setDark((now) => (keep("theme", now ? "light" : "dark"), !now)),
    toggleText: () => setSmall((now) => (keep("text", now ? "normal" : "small"), !now)),
  };
}
