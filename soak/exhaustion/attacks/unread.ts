import { type Attack, CLOGGED, manyAddresses, oneAddress, request } from "./attack.ts";

function unread(
  name: string,
  title: string,
  path: string,
  { from = manyAddresses, long = false } = {},
): Attack {
  return {
    name,
    title,
    long,
    orders: (field) => [
      {
        port: field.port,
        tls: field.tls,
        ...CLOGGED,
        ...from(field),
        steps: [{ send: request(path) }],
      },
    ],
    bites: ({ opened, sent }) => opened > 0 && sent >= opened * request(path).length,
  };
}

/** Answers that the clients do not read. */
export const UNREAD: readonly Attack[] = [
  unread("answers", "unread answers of 250 KB", "/public/bytes?size=250000"),
  unread("answers-one", "the same from one address", "/public/bytes?size=250000", {
    from: oneAddress,
    long: true,
  }),
  unread("downloads", "unread answers of 50 MB", "/public/bytes?size=50000000", {
    long: true,
  }),
  unread("heads", "unread answers with 60 KB of header fields", "/public/head?size=60000"),
  unread("hints", "unread early hints without end", "/public/hints"),
  {
    name: "too-large",
    title: "heads of 20 KB, refusals unread, connections begun anew",
    orders: (field) => [
      {
        port: field.port,
        tls: field.tls,
        ...CLOGGED,
        ...manyAddresses(field),
        reconnect: true,
        steps: [{ send: request("/app/ok", { bytes: 20_000 }), times: 2 }],
      },
    ],
    bites: ({ opened, sent }) => opened > 0 && sent > opened * 8_000,
  },
];
