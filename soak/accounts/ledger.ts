import type { AccessLine } from "./access-line.ts";
import { OUR_IDS, type Asked } from "./asked.ts";
import type { FaultWindows } from "./fault-windows.ts";
import { Tally } from "./tally.ts";
import { Trouble } from "./trouble.ts";
import { judgeRequest } from "./verdict.ts";

/**
 * Matches every request of a client with its line in the log, judges the pair and forgets it: except for the ids of
 * responses, its memory does not grow with the length of the run.
 */
export class Ledger {
  readonly #windows: FaultWindows;
  /** Finished requests whose log line has not arrived yet, by request id. */
  readonly #asked = new Map<string, Asked>();
  /** Lines whose clients have not finished yet. */
  readonly #lines = new Map<string, AccessLine>();
  readonly #responseIds = new Set<number>();
  readonly right = new Tally();
  readonly excused = new Tally();
  readonly lost = new Trouble();
  readonly mismatches = new Trouble();
  readonly repeatedIds = new Trouble();
  /** Refusals of bytes that were not a request, by status: as clients got them, and as logged. */
  readonly namelessAnswers = new Tally();
  readonly namelessLines = new Tally();
  /** Clients that left before their head was complete: each may have caused a line. */
  unfinishedHeads = 0;
  /** The number of lines about requests. */
  lines = 0;

  constructor(windows: FaultWindows) {
    this.#windows = windows;
  }

  /** A client has received its answer, or has left. */
  asked(asked: Asked): void {
    const line = this.#lines.get(asked.id);
    if (line === undefined) {
      this.#asked.set(asked.id, asked);
    } else {
      this.#lines.delete(asked.id);
      this.#judge(asked, line);
    }
  }

  /** A line about a request was logged. */
  line(line: AccessLine): void {
    this.lines += 1;
    if (this.#responseIds.has(line.id)) this.repeatedIds.add(`the id ${line.id} came twice`);
    this.#responseIds.add(line.id);
    if (!line.requestId.startsWith(OUR_IDS)) {
      this.namelessLines.add(String(line.status));
      return;
    }
    const asked = this.#asked.get(line.requestId);
    if (asked === undefined) {
      if (this.#lines.has(line.requestId)) this.repeatedIds.add(`${line.requestId} has two lines`);
      this.#lines.set(line.requestId, line);
    } else {
      this.#asked.delete(line.requestId);
      this.#judge(asked, line);
    }
  }

  /** Requests without a line. One whose client left needs none, since its bytes may not have arrived. */
  get withoutLine(): readonly Asked[] {
    return [...this.#asked.values()].filter(({ got }) => got.what !== "left");
  }

  /** Lines without a client's request. */
  get withoutClient(): readonly AccessLine[] {
    return [...this.#lines.values()];
  }

  #judge(asked: Asked, line: AccessLine): void {
    const verdict = judgeRequest(asked, line, this.#windows);
    switch (verdict.word) {
      case "right":
        this.right.add(asked.kind);
        break;
      case "excused":
        this.excused.add(verdict.fault);
        break;
      case "lost":
        this.lost.add(verdict.why);
        break;
      case "mismatch":
        this.mismatches.add(verdict.why);
        break;
    }
  }
}
