import { fieldsOf, type Answer } from "./ask.ts";
import { valuesOf } from "./http-reader.ts";

/** The request that the echo backend received, read from its response. */
export interface Echoed {
  readonly method: string;
  /** Exactly as in the request line. */
  readonly url: string;
  readonly bodyLength: number;
  readonly bodySha256: string;
  readonly trailers: readonly (readonly [string, string])[];
  /** Returns the value of a header, or undefined if it is absent. Multiple values are joined with ` | `. */
  header(name: string): string | undefined;
}

/** Parses a response of the echo backend. Throws if it is anything else. */
export function echoedBy(answer: Pick<Answer, "body">): Echoed {
  const fields = fieldsOf(answer);
  const headers = pairsOf(fields["rawHeaders"]);
  return {
    method: String(fields["method"]),
    url: String(fields["url"]),
    bodyLength: Number(fields["bodyLength"]),
    bodySha256: String(fields["bodySha256"]),
    trailers: pairsOf(fields["rawTrailers"]),
    header(name) {
      const values = valuesOf(headers, name);
      return values.length === 0 ? undefined : values.join(" | ");
    },
  };
}

function pairsOf(list: unknown): (readonly [string, string])[] {
  if (!Array.isArray(list)) throw new Error("not the echo backend's answer");
  const texts = list.map(String);
  return texts.flatMap((name, i) => (i % 2 === 0 ? [[name, texts[i + 1] ?? ""] as const] : []));
}
