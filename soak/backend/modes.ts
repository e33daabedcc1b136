/** How a backend behaves: as it should, says nothing, breaks off in mid-answer, or drops what it is asked. */
const MODES = ["right", "silent", "breaking", "dropping"] as const;
export type Mode = (typeof MODES)[number];

export function isMode(value: unknown): value is Mode {
  return MODES.some((mode) => mode === value);
}
