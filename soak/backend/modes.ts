/** How a backend behaves: correctly, without answering, with incomplete answers, or by dropping connections. */
const MODES = ["right", "silent", "breaking", "dropping"] as const;
export type Mode = (typeof MODES)[number];

export function isMode(value: unknown): value is Mode {
  return MODES.some((mode) => mode === value);
}
