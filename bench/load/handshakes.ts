import { startChild } from "../machine/children.ts";

/** Connections over TLS 1.3, each with one request. */
export interface Handshakes {
  readonly port: number;
  readonly ca: string;
  readonly token: string;
  /** Whether each resumes the session of the previous one; otherwise each is a full handshake. */
  readonly resumed: boolean;
  readonly seconds: number;
}

export interface HandshakesResult {
  readonly handshakes: number;
}

const CLIENT = `${import.meta.dirname}/../clients/handshakes.ts`;

/**
 * Opens them from a separate program. Rejects if one is not answered, or is resumed although it should be full, or vice versa.
 * @param warm called when it begins to count.
 */
export async function shakeHands(options: Handshakes, warm: () => void): Promise<HandshakesResult> {
  await using child = startChild(process.execPath, [CLIENT, JSON.stringify(options)]);
  await child.read((output) => (output.includes("warm") ? true : undefined));
  warm();
  const text = await child.read(
    (output) => /^result (.*)$/m.exec(output)?.[1],
    (options.seconds + 30) * 1000,
  );
  return JSON.parse(text);
}
