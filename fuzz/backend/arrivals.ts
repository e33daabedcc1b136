import type { AnswerStyle } from "../wire/converse.ts";
import { valuesOf } from "../wire/head.ts";
import type { ReadRequest } from "../wire/requests.ts";

/** One request that reached the backend: from its head on, whether or not its body ever becomes whole. */
export interface Arrival {
  /** Counted from 1; the answer carries it. */
  readonly number: number;
  /** The head; the body when it is whole. */
  request: ReadRequest;
  /** What came through after the backend had switched protocols; undefined when it has not. */
  tunnel: string | undefined;
}

const PLAIN: AnswerStyle = { interim: "", fields: "" };

/** What reached the backend, by the client that it came from. */
export class Arrivals {
  readonly #byClient = new Map<string, Arrival[]>();
  readonly #styles = new Map<string, AnswerStyle>();
  #count = 0;
  /** Requests that name no client whom we know. */
  readonly strays: Arrival[] = [];
  /** Why bytes that reached the backend are no clear request. */
  readonly broken: string[] = [];

  /**
   * Expects requests from this address until `forget`.
   *
   * @param style of the answers to them.
   */
  expect(client: string, style: AnswerStyle = PLAIN): readonly Arrival[] {
    const arrivals: Arrival[] = [];
    this.#byClient.set(client, arrivals);
    this.#styles.set(client, style);
    return arrivals;
  }

  forget(client: string): void {
    this.#byClient.delete(client);
    this.#styles.delete(client);
  }

  styleFor(request: ReadRequest): AnswerStyle {
    return this.#styles.get(clientOf(request)) ?? PLAIN;
  }

  add(request: ReadRequest): Arrival {
    this.#count += 1;
    const arrival: Arrival = { number: this.#count, request, tunnel: undefined };
    const known = this.#byClient.get(clientOf(request)) ?? this.strays;
    known.push(arrival);
    return arrival;
  }
}

/** The client as the proxy saw it: the last address of `X-Forwarded-For`. What was smuggled past the proxy has none. */
function clientOf({ fields }: ReadRequest): string {
  const [last = ""] = valuesOf(fields, "x-forwarded-for").slice(-1);
  return last.slice(last.lastIndexOf(",") + 1).trim();
}
