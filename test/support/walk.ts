import { once } from "node:events";
import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";

/** What a process executed of one source file. */
export interface WalkedFile {
  /** Seen from the root of the repository. */
  readonly file: string;
  /** In the order of the file; an anonymous function has the number of its line. */
  readonly functions: readonly string[];
  /** Lines of these functions, without blank lines and comments. */
  readonly lines: number;
}

/** The part of V8's report that we read; see Profiler.ScriptCoverage of the Chrome DevTools Protocol. */
interface ScriptCoverage {
  readonly url: string;
  readonly functions: readonly FunctionCoverage[];
}

interface FunctionCoverage {
  readonly functionName: string;
  /** The first one is the whole function. */
  readonly ranges: readonly [Range, ...Range[]];
}

interface Range {
  readonly startOffset: number;
  readonly endOffset: number;
  readonly count: number;
}

/** The functions of `src` that ran, by the URL of their file. */
type Ran = ReadonlyMap<string, readonly FunctionCoverage[]>;

const SOURCE = /\/(src\/(?!.*node_modules).*)$/;
const COMMENT_OR_BLANK = /^\s*(?:\/\/|\/?\*|$)/;

/** Records which functions of `src` a process executes, with V8's precise coverage. */
export class WalkRecorder {
  readonly #socket: WebSocket;
  readonly #waiting = new Map<number, (result: unknown) => void>();
  #last = 0;

  private constructor(socket: WebSocket) {
    this.#socket = socket;
    socket.addEventListener("message", ({ data }) => {
      const { id, result } = JSON.parse(String(data)) as { id: number; result: unknown };
      this.#waiting.get(id)?.(result);
      this.#waiting.delete(id);
    });
  }

  /** @param url what a process that runs the sources printed for `--inspect`. */
  static async attach(url: string): Promise<WalkRecorder> {
    const socket = new WebSocket(url);
    await once(socket, "open");
    const recorder = new WalkRecorder(socket);
    await recorder.#call("Profiler.enable");
    await recorder.#call("Profiler.startPreciseCoverage", { callCount: true, detailed: false });
    return recorder;
  }

  /** Returns what ran since the last call. */
  async take(): Promise<Ran> {
    const taken = (await this.#call("Profiler.takePreciseCoverage")) as {
      result: readonly ScriptCoverage[];
    };
    return new Map(
      taken.result
        .filter(({ url }) => SOURCE.test(url))
        .map(({ url, functions }) => [
          url,
          functions.filter(({ ranges: [whole] }) => whole.count > 0),
        ]),
    );
  }

  close(): void {
    this.#socket.close();
  }

  #call(method: string, params: object = {}): Promise<unknown> {
    const { promise, resolve } = Promise.withResolvers<unknown>();
    this.#last += 1;
    this.#waiting.set(this.#last, resolve);
    this.#socket.send(JSON.stringify({ id: this.#last, method, params }));
    return promise;
  }
}

/** Returns what ran, without what also runs in an idle process: the longest walks first. */
export function walkedFiles(ran: Ran, idle: Ran): WalkedFile[] {
  return [...ran]
    .map(([url, functions]) => {
      const ignored = new Set(idle.get(url)?.map(({ ranges: [{ startOffset }] }) => startOffset));
      return walkedFile(
        url,
        functions.filter(({ ranges: [{ startOffset }] }) => !ignored.has(startOffset)),
      );
    })
    .filter(({ functions }) => functions.length > 0)
    .toSorted((a, b) => b.lines - a.lines);
}

function walkedFile(url: string, functions: readonly FunctionCoverage[]): WalkedFile {
  const text = readFileSync(fileURLToPath(url), "utf8");
  const lineAt = (offset: number): number => text.slice(0, offset).split("\n").length - 1;
  const all = text.split("\n");
  const walked = new Set<number>();
  for (const { ranges } of functions) {
    const last = lineAt(ranges[0].endOffset);
    for (let line = lineAt(ranges[0].startOffset); line <= last; line += 1) {
      if (!COMMENT_OR_BLANK.test(all[line] ?? "")) walked.add(line);
    }
  }
  return {
    file: SOURCE.exec(url)?.[1] ?? url,
    functions: functions.map(
      ({ functionName, ranges }) => functionName || `line ${lineAt(ranges[0].startOffset) + 1}`,
    ),
    lines: walked.size,
  };
}
