import { type App, type AppOptions, startApp } from "../app/start.ts";

const TROUBLES = new Map<unknown, string>([
  ["EADDRINUSE", "is taken by another program"],
  ["EADDRNOTAVAIL", "is no address of this machine"],
  ["EACCES", "may not be listened on by this user"],
]);

/**
 * Starts the proxy.
 *
 * @param advice what to do about an address that cannot be had.
 * @throws Error with one line for a person when an address cannot be had, else whatever `startApp` throws.
 */
export async function start(options: AppOptions, advice: string): Promise<App> {
  try {
    return await startApp(options);
  } catch (error) {
    const address = troubledAddress(error);
    throw address === undefined ? error : new Error(`${address}; ${advice}`, { cause: error });
  }
}

function troubledAddress(error: unknown): string | undefined {
  if (!(error instanceof Error && "code" in error && "address" in error && "port" in error)) {
    return undefined;
  }
  const trouble = TROUBLES.get(error.code);
  if (trouble === undefined) return undefined;
  const host = String(error.address);
  return `${host.includes(":") ? `[${host}]` : host}:${String(error.port)} ${trouble}`;
}
