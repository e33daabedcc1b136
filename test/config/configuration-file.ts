import { onTestFinished } from "vitest";
import { loadConfiguration, type LoadedConfiguration } from "../../src/config/load.ts";
import { ConfigError, type ConfigProblem } from "../../src/core/config-problem.ts";
import { temporaryDirectory } from "../support/temporary-directory.ts";

/** A minimal valid file, to which tests add. */
export const SMALLEST = `server: { tls: off }
upstreams: { app: { targets: ["http://127.0.0.1:8080"] } }
`;

export interface Outside {
  readonly env?: Record<string, string>;
  readonly overrides?: Record<string, string>;
  /** Other files of the directory. */
  readonly files?: Record<string, string>;
}

/** Loads a text from a real file in a new directory. */
export async function load(
  text: string | Buffer,
  outside: Outside = {},
): Promise<LoadedConfiguration> {
  const directory = await temporaryDirectory();
  onTestFinished(() => directory.close());
  const file = await directory.write("config.yaml", text);
  for (const [name, content] of Object.entries(outside.files ?? {}))
    await directory.write(name, content);
  return loadConfiguration({ file, env: outside.env ?? {}, overrides: outside.overrides ?? {} });
}

/** Returns the problems of a text; file names are without the directory. */
export async function problemsOf(
  text: string | Buffer,
  outside: Outside = {},
): Promise<ConfigProblem[]> {
  try {
    await load(text, outside);
    return [];
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error;
    return error.problems.map((problem) => ({
      ...problem,
      file: problem.file.replace(/^\/.*\//, ""),
    }));
  }
}

/** Returns `line:column name-of-the-key` for each problem. */
export async function faultsOf(text: string | Buffer, outside: Outside = {}): Promise<string[]> {
  const problems = await problemsOf(text, outside);
  return problems.map(({ line, column, message }) => `${line}:${column} ${message.split(" ")[0]}`);
}
