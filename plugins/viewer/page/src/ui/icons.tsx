// Signs on buttons, 24 x 24. Each button has its name in words besides.

const PATHS = {
  play: "M7 4.5v15l13-7.5z",
  pause: "M6 4.5h4v15H6zM14 4.5h4v15h-4z",
  forward: "M5 4.5v15l10-7.5zM16.5 4.5h2.5v15h-2.5z",
  back: "M19 4.5v15L9 12zM5 4.5h2.5v15H5z",
  first: "M20 4.5v15L12 12zM12 4.5v15L4 12z",
  last: "M4 4.5v15l8-7.5zM12 4.5v15l8-7.5z",
  text: "M3 18 7.5 6h2L14 18h-2.2l-1-2.9H6.2L5.2 18zm3.9-4.8h3.2L8.5 8.4zM15 18l2.8-7.5h1.5L22 18h-1.6l-.6-1.8h-2.6L16.6 18zm2.6-3.1h1.8l-.9-2.8z",
  moon: "M20 14.5A8.5 8.5 0 0 1 9.5 4 8.5 8.5 0 1 0 20 14.5z",
  sun: "M12 7a5 5 0 1 0 0 10 5 5 0 0 0 0-10zM11 1.5h2v3.5h-2zM11 19h2v3.5h-2zM1.5 11H5v2H1.5zM19 11h3.5v2H19zM4 5.4 5.4 4l2.5 2.5-1.4 1.4zM16.1 17.5l1.4-1.4L20 18.6 18.6 20zM4 18.6l2.5-2.5 1.4 1.4L5.4 20zM16.1 6.5 18.6 4 20 5.4l-2.5 2.5z",
  help: "M12 2a10 10 0 1 0 0 20 10 10 0 0 0 0-20zm1 15.5h-2v-2h2zm1.6-6.1-.8.8c-.6.6-.8 1-.8 2.1h-2c0-1.6.4-2.5 1.2-3.3l1-1c.9-.9.3-2.5-1-2.5-.9 0-1.5.6-1.6 1.5h-2C8.700 6.900 10.200 5.500 12.200 5.500c2.900 0 4.500 3.500 2.400 5.900z",
  close: "M5 6.4 6.400 5 12 10.600 17.600 5 19 6.400 13.400 12 19 17.600 17.600 19 12 13.400 6.400 19 5 17.600 10.600 12z",
  plus: "M11 4h2v7h7v2h-7v7h-2v-7H4v-2h7z",
  minus: "M4 11h16v2H4z",
  fit: "M4 4h6v2H6v4H4zM14 4h6v6h-2V6h-4zM4 14h2v4h4v2H4zM18 14h2v6h-6v-2h4z",
  follow: "M11 2h2v3.100A7 7 0 0 1 18.900 11H22v2h-3.100A7 7 0 0 1 13 18.900V22h-2v-3.100A7 7 0 0 1 5.100 13H2v-2h3.100A7 7 0 0 1 11 5.100zM12 7a5 5 0 1 0 0 10 5 5 0 0 0 0-10zm0 3a2 2 0 1 1 0 4 2 2 0 0 1 0-4z",
  shut: "M4 4h7v7H4zM13 4h7v7h-7zM4 13h7v7H4zM13 13h7v7h-7z",
} as const;

export function Icon({ name }: { name: keyof typeof PATHS }) {
  return (
    <svg class="icon" viewBox="0 0 24 24" aria-hidden="true" focusable="false">
      <path d={PATHS[name]} fill="currentColor" />
    </svg>
  );
}
