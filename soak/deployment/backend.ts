import { fileURLToPath } from "node:url";
import type { Mode } from "../backend/modes.ts";
import { type Program, startProgram } from "./program.ts";

const SCRIPT = fileURLToPath(new URL("../backend/main.ts", import.meta.url));

/**
 * The address of backends. Clients connect from another one, so that no client's port can occupy that of a dead backend.
 */
const HOST = "127.0.0.2";
const ANSWER_MS = 20_000;

/** One target: a program that can be killed, restarted on the same port, and made to misbehave. */
export class Backend {
  #program: Program;
  readonly port: number;

  private constructor(program: Program, port: number) {
    this.#program = program;
    this.port = port;
  }

  static async start(): Promise<Backend> {
    const program = startScript(0);
    return new Backend(program, Number(await nextField(program, "port")));
  }

  /** The address as named in Sallyport's log. */
  get address(): string {
    return `http://${HOST}:${this.port}`;
  }

  /** Changes its behaviour; resolves when that is in effect. */
  async behave(mode: Mode): Promise<void> {
    const done = nextField(this.#program, "mode");
    this.#program.child.send(mode);
    await done;
  }

  /** Sends SIGKILL to its process. */
  async kill(): Promise<void> {
    await this.#program.kill();
  }

  /** Starts it again on the same port; resolves when it listens. */
  async restart(): Promise<void> {
    this.#program = startScript(this.port);
    await nextField(this.#program, "port");
  }
}

function startScript(port: number): Program {
  const complain = (line: string): void => console.error(`backend: ${line}`);
  return startProgram({
    script: SCRIPT,
    args: [HOST, String(port)],
    onLine: complain,
    onErrorLine: complain,
    messages: true,
  });
}

/** Resolves with this field of the next message that has it. Rejects if the program ends or sends none. */
async function nextField({ child }: Program, field: string): Promise<unknown> {
  const { promise, resolve, reject } = Promise.withResolvers<unknown>();
  const read = (message: unknown): void => {
    if (typeof message === "object" && message !== null && field in message) {
      resolve(new Map<string, unknown>(Object.entries(message)).get(field));
    }
  };
  const fail = (): void => reject(new Error(`the backend did not report its ${field}`));
  const timer = setTimeout(fail, ANSWER_MS);
  child.on("message", read).once("close", fail);
  try {
    return await promise;
  } finally {
    clearTimeout(timer);
    child.off("message", read).off("close", fail);
  }
}
