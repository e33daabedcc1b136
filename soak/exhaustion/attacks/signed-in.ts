import {
  type Attack,
  addresses,
  CLOGGED,
  manyAddresses,
  post,
  request,
  webSocket,
} from "./attack.ts";

const TOKENS = 10_000;
const SENDERS = 4;

/** A masked binary frame of 16 KB with a mask of zeros (RFC 6455 §5.2). */
const FRAME = `\u0082\u00fe\u0040\u0000\0\0\0\0${"f".repeat(16_384)}`;
const SWITCHED = "\r\n\r\n";

function uploads(name: string, title: string, length: number, sent: number, long = false): Attack {
  return {
    name,
    title,
    long,
    orders: (field) => [
      {
        port: field.port,
        tls: field.tls,
        ...manyAddresses(field),
        steps: [
          { send: post("/app/ignore", `Content-Length: ${length}\r\n`, field.token) },
          { send: "u".repeat(1_000), times: Math.floor(sent / 1_000) },
        ],
      },
    ],
    bites: (counts) => counts.opened > 0 && counts.sent > Math.min(sent, 10_000) * counts.opened,
  };
}

/** Attacks of one client with a token. */
export const SIGNED_IN: readonly Attack[] = [
  {
    name: "busy",
    title: "as many honest requests as can be answered: what all others begin from",
    orders: ({ port, tls, token }) => [
      {
        port,
        tls,
        addresses: addresses(8),
        connections: 64,
        steps: Array.from({ length: 20_000 }, () => [
          { send: request("/app/ok", { token }) },
          { await: "ok\n" },
        ]).flat(),
      },
    ],
    bites: ({ opened, sent }) => opened === 64 && sent > 1e6,
  },
  {
    name: "tokens",
    title: `${TOKENS} tokens with 200 groups, each sent once`,
    async orders({ port, tls, largeTokens }) {
      const tokens = await largeTokens(TOKENS);
      return Array.from({ length: SENDERS }, (_, sender) => ({
        port,
        tls,
        addresses: addresses(1),
        connections: 1,
        steps: tokens
          .filter((_token, index) => index % SENDERS === sender)
          .flatMap((token) => [{ send: request("/app/ok", { token }) }, { await: "ok\n" }]),
      }));
    },
    bites: ({ finished }) => finished === SENDERS,
  },
  {
    name: "websocket-client",
    title: "WebSockets that the client does not read",
    orders: (field) => [
      {
        port: field.port,
        tls: field.tls,
        ...CLOGGED,
        ...manyAddresses(field),
        steps: [webSocket("/app/flood", field.token), { await: SWITCHED }],
      },
    ],
    bites: ({ finished, received }) => finished > 0 && received > 0,
  },
  {
    name: "websocket-backend",
    title: "WebSockets that the backend does not read",
    orders: (field) => [
      {
        port: field.port,
        tls: field.tls,
        ...manyAddresses(field),
        steps: [
          webSocket("/app/deaf", field.token),
          { await: SWITCHED },
          { send: FRAME, times: -1 },
        ],
      },
    ],
    bites: ({ opened, sent }) => opened > 0 && sent > opened * 64_000,
  },
  {
    name: "websocket-silent",
    slowBackend: true,
    title: "WebSockets to a backend that never answers, frames behind the handshake",
    orders: (field) => [
      {
        port: field.port,
        tls: field.tls,
        ...manyAddresses(field),
        steps: [webSocket("/app/hang", field.token), { send: FRAME, times: 16 }],
      },
    ],
    bites: ({ opened, sent }) => opened > 0 && sent > opened * 10_000,
  },
  uploads("uploads-small", "bodies of 16 KB that stop before the end", 16_384, 16_000),
  uploads("uploads-large", "bodies of 10 MB that stop before the end", 10_000_000, 9_000_000),
  {
    name: "uploads-trickle",
    title: "bodies of chunks of one byte that the backend does not read",
    long: true,
    orders: (field) => [
      {
        port: field.port,
        tls: field.tls,
        ...manyAddresses(field),
        steps: [
          { send: post("/app/ignore", "Transfer-Encoding: chunked\r\n", field.token) },
          { send: "1\r\nx\r\n", times: -1 },
        ],
      },
    ],
    bites: ({ opened, sent }) => opened > 0 && sent > opened * 5_000,
  },
];
