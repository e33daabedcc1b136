import fc from "fast-check";
import type { Credentials } from "../subject/subject.ts";
import { casesOf } from "./cases.ts";
import { type Draft, messages } from "./message.ts";

const PUT = [
  "",
  "=",
  "==",
  ".",
  "..",
  " ",
  "\t",
  "\u00a0",
  "\u00ad",
  "+",
  "/",
  "-",
  "_",
  "A",
  "%3D",
  ",",
];

type Turn = (token: string) => string;

/** A change of a token: some bytes, its last character, or the order of its parts. */
const turn: fc.Arbitrary<Turn> = fc.oneof(
  {
    arbitrary: fc
      .tuple(fc.nat(9_999), fc.nat(2), fc.constantFrom(...PUT))
      .map(([at, cut, put]): Turn => (token) => {
        const from = Math.floor((at * (token.length + 1)) / 10_000);
        return token.slice(0, from) + put + token.slice(from + cut);
      }),
    weight: 6,
  },
  fc.constantFrom<Turn>(
    (token) => token.replaceAll("-", "+").replaceAll("_", "/"),
    (token) => token.toLowerCase(),
    (token) => token.split(".").toReversed().join("."),
    (token) => token.split(".").slice(0, 2).join("."),
    (token) => `${token}.${token.split(".")[2] ?? ""}`,
    (token) => `"${token}"`,
    (token) => `${token}, Bearer ${token}`,
  ),
  fc.nat(63).map(
    (index): Turn =>
      (token) =>
        token.slice(0, -1) + (ALPHABET[index] ?? ""),
  ),
);

const ALPHABET = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

const SCHEMES = [
  ...["Bearer ", "Bearer ", "Bearer ", "bearer ", "BEARER ", "Bearer  ", "Bearer\t", "Bearer"],
  ...[
    "Bearer \u00a0",
    "Bearer,",
    "Basic ",
    "Token ",
    "",
    " Bearer ",
    "Bearer \t",
    "Bearer Bearer ",
  ],
];
const NAMES = [
  ...["Authorization", "Authorization", "Authorization", "authorization", "AUTHORIZATION"],
  ...["Authorization_", "Proxy-Authorization", "X-Authorization", "Authorization.", "Cookie"],
];

/** Generates spellings of a valid token, and tokens made by strangers. */
export function tokens({ valid, refused }: Credentials) {
  const token = fc
    .tuple(
      fc.oneof({ arbitrary: fc.constant(valid), weight: 4 }, fc.constantFrom(...refused)),
      fc.oneof(fc.constant<Turn[]>([]), fc.array(turn, { minLength: 1, maxLength: 2 })),
    )
    .map(([text, turns]) => turns.reduce((before, each) => each(before), text));
  const field = fc
    .tuple(fc.constantFrom(...NAMES), fc.constantFrom(...SCHEMES), token)
    .map(([name, scheme, text]) => `${name}: ${scheme}${text}`);
  const draft = fc
    .record({
      path: fc.constantFrom(
        "/admin",
        "/orders",
        "/admin?access_token=1",
        "/api/version",
        "/public/a",
      ),
      fields: fc.array(field, { minLength: 1, maxLength: 2 }),
    })
    .map(({ path, fields }): Draft => ({
      line: `GET ${path} HTTP/1.1`,
      fields: ["Host: localhost", ...fields],
      body: "",
    }));
  return casesOf(messages(draft, field));
}
