import { fileURLToPath } from "node:url";
import type { Mode } from "../backend/modes.ts";
import { type Program, startProgram } from "./program.ts";

const SCRIPT = fileURLToPath(new URL("../backend/main.ts", import.meta.url));

/**
 * Where backends listen: not where clients connect from, so that no client's own port can take that of a backend while it
 * is dead.
 */
const HOST = "127.0.0.2";
const ANSWER_MS = 20_000;

/** One target: a program that can be killed, started again on the same port, and told to behave badly. */
export class Backend {
  #program: Program;
  readonly port: number;

  private constructor(program: Program, port: number) {
    this.#program = program;
    this.port = port;
  }

  static async start(): Promise<Backend> {
    const program = startScript(0);
    return new Backend(program, Number(await told(program, "port")));
  }

  /** As Sallyport's log names it. */
  get address(): string {
    return `http://${HOST}:${this.port}`;
  }

  /** Resolves when it behaves so. */
  async behave(mode: Mode): Promise<void> {
    const done = told(this.#program, "mode");
    this.#program.child.send(mode);
    await done;
  }

  /** SIGKILL to its process. */
  async kill(): Promise<void> {
    await this.#program.kill();
  }

  /** Starts it again where it was; resolves when it listens. */
  async restart(): Promise<void> {
    this.#program = startScript(this.port);
    await told(this.#program, "port");
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

/** The next message that has this field. Rejects when the program ends or says nothing. */
async function told({ child }: Program, field: string): Promise<unknown> {
  const { promise, resolve, reject } = Promise.withResolvers<unknown>();
  const read = (message: unknown): void => {
    if (typeof message === "object" && message !== null && field in message) {
      resolve(new Map<string, unknown>(Object.entries(message)).get(field));
    }
  };
  const fail = (): void => reject(new Error(`the backend did not tell its ${field}`));
  const timer = setTimeout(fail, ANSWER_MS);
  child.on("message", read).once("close", fail);
  try {
    return await promise;
  } finally {
    clearTimeout(timer);
    child.off("message", read).off("close", fail);
  }
}
