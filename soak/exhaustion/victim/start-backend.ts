import { join } from "node:path";
import { until } from "../../../test/support/until.ts";
import { type Program, type ProgramOptions, startProgram } from "../../deployment/program.ts";

export interface Backend {
  readonly program: Program;
  readonly port: number;
  /** The port for HTTPS; undefined without a certificate. */
  readonly securePort: number | undefined;
}

const SCRIPT = join(import.meta.dirname, "backend.ts");
const START_MS = 30_000;

/**
 * Starts the backend; resolves when it listens.
 *
 * @param files a certificate and its key.
 */
export async function startBackend(
  files: readonly [certificate: string, key: string] | readonly [] = [],
  command: Pick<ProgramOptions, "command" | "flags"> = {},
): Promise<Backend> {
  const ports = new Map<string, number>();
  const program = startProgram({
    ...command,
    script: SCRIPT,
    args: files,
    onLine(line) {
      const [, name = "", port] = /^(.*port) (\d+)$/.exec(line) ?? [];
      ports.set(name, Number(port));
    },
    onErrorLine: (line) => console.error(`backend: ${line}`),
    messages: false,
  });
  await until(() => ports.has("port") && ports.has("secure port") === files.length > 0, START_MS);
  return { program, port: ports.get("port") ?? 0, securePort: ports.get("secure port") };
}
