import { type CharacterSet, EVERY_CHARACTER, setOf } from "./characters.ts";

/** A parsed regular expression. */
export type Expression =
  | { readonly kind: "one"; readonly of: CharacterSet }
  | { readonly kind: "sequence"; readonly parts: readonly Expression[] }
  | { readonly kind: "choice"; readonly options: readonly Expression[] }
  | {
      readonly kind: "repeat";
      readonly part: Expression;
      readonly least: number;
      /** May be Infinity. */
      readonly most: number;
    };

export const ANY_TEXT: Expression = {
  kind: "repeat",
  part: { kind: "one", of: EVERY_CHARACTER },
  least: 0,
  most: Infinity,
};

/** Returns the expression that matches only this ASCII text. */
export function literal(text: string): Expression {
  const parts = Array.from(text, (character) => ({ kind: "one", of: setOf(character) }) as const);
  return { kind: "sequence", parts };
}

/** An expression is invalid or too costly. */
export class ExpressionError extends Error {
  /** The position of the error, from 1; undefined if it concerns the whole expression. */
  readonly at: number | undefined;
  readonly hint: string | undefined;

  constructor(message: string, at?: number, hint?: string) {
    super(message);
    this.at = at;
    this.hint = hint;
  }
}
