import { type Child, startChild } from "../machine/children.ts";

/** Connections over TLS that stay open without traffic. */
export interface Held {
  readonly port: number;
  readonly ca: string;
  readonly token: string;
  readonly count: number;
  readonly webSocket: boolean;
}

const CLIENT = `${import.meta.dirname}/../clients/held.ts`;

/** Opens them from a separate program; resolves when all are open. Ending the child closes them. */
export async function hold(options: Held): Promise<Child> {
  return startHolding(CLIENT, options);
}

/** Starts a program that opens connections or streams; resolves when it reports that it holds them. */
export async function startHolding(program: string, options: object): Promise<Child> {
  const child = startChild(process.execPath, [program, JSON.stringify(options)]);
  try {
    await child.read((output) => (output.includes("holding ") ? true : undefined), 60_000);
    return child;
  } catch (error) {
    await child.stop();
    throw error;
  }
}
