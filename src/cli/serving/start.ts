import { type App, type AppOptions, startApp } from "../../app/app.ts";
import { ConfigError } from "../../core/config-problem.ts";
import { hasNodeParser } from "../../upstream/http1/response-parser.ts";

const BIND_ERRORS = new Map<unknown, string>([
  ["EADDRINUSE", "is taken by another program"],
  ["EADDRNOTAVAIL", "is not an address of this machine"],
  ["EACCES", "cannot be listened on by this user"],
]);

/**
 * Starts the proxy.
 *
 * @param advice what the user can do if an address is not available.
 * @throws ConfigError if Node's parser, which reads the backends' responses, is not the expected one; Error with a one-line
 * message if an address is not available; else the error of `startApp`.
 */
export async function start(options: AppOptions, advice: string): Promise<App> {
  if (!hasNodeParser()) {
    const message = `Node ${process.versions.node} has a different HTTP parser: it needs Node 24 or 26`;
    throw new ConfigError([{ file: process.execPath, message }]);
  }
  try {
    return await startApp(options);
  } catch (error) {
    const address = describeBindError(error);
    throw address === undefined ? error : new Error(`${address}; ${advice}`, { cause: error });
  }
}

function describeBindError(error: unknown): string | undefined {
  if (!(error instanceof Error && "code" in error && "address" in error && "port" in error)) {
    return undefined;
  }
  const trouble = BIND_ERRORS.get(error.code);
  if (trouble === undefined) return undefined;
  const host = String(error.address);
  return `${host.includes(":") ? `[${host}]` : host}:${String(error.port)} ${trouble}`;
}
