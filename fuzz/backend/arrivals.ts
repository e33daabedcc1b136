import type { AnswerStyle } from "../wire/converse.ts";
import { valuesOf } from "../wire/head.ts";
import type { ReadRequest } from "../wire/requests.ts";

/** One request that reached the backend: counted when its head has arrived, whether or not its body ever becomes complete. */
export interface Arrival {
  /** Counts from 1; the answer contains it. */
  readonly number: number;
  /** The head, and the body when it is complete. */
  request: ReadRequest;
  /** The data that arrived after the backend switched protocols; undefined if it has not. */
  tunnel: string | undefined;
}

const PLAIN: AnswerStyle = { interim: "", fields: "" };

/** The requests that reached the backend, by client. */
export class Arrivals {
  readonly #byClient = new Map<string, Arrival[]>();
  readonly #styles = new Map<string, AnswerStyle>();
  #count = 0;
  /** Requests without a known client. */
  readonly strays: Arrival[] = [];
  /** Bytes that reached the backend but are not an unambiguous request. */
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

/** Returns the client as seen by the proxy: the last address in `X-Forwarded-For`, which a smuggled request does not have. */
function clientOf({ fields }: ReadRequest): string {
  const [last = ""] = valuesOf(fields, "x-forwarded-for").slice(-1);
  return last.slice(last.lastIndexOf(",") + 1).trim();
}
