import {
  type Attack,
  addresses,
  type Battlefield,
  everyConnection,
  manyAddresses,
  post,
  request,
} from "./attack.ts";

const place = (field: Battlefield) => ({ port: field.port, tls: field.tls });

/** The beginning of a ClientHello: 100 bytes of a record of 512 (RFC 8446 §5.1). */
const HALF_HELLO = `\u0016\u0003\u0001\u0002\u0000\u0001\u0000\u0001\u00fc\u0003\u0003${"r".repeat(89)}`;

const login = (name: string): string => JSON.stringify({ username: name, password: "guessed" });

/** Attacks that need neither a token nor a public route. */
export const STRANGERS: readonly Attack[] = [
  {
    name: "connections",
    title: "every connection that strangers can have, half idle and half with half a head of 15 KB",
    fills: true,
    orders(field) {
      const half = { ...everyConnection(field), connections: Math.ceil(field.connections * 0.55) };
      return [
        { ...place(field), ...half, steps: [] },
        {
          ...place(field),
          ...half,
          reconnect: true,
          steps: [{ send: request("/app/ok", { bytes: 15_000 }).slice(0, -4) }],
        },
      ];
    },
    bites: ({ opened }, { connections }) => opened > connections * 0.8,
  },
  {
    name: "handshakes",
    title: "half a TLS handshake on every connection that strangers can have",
    over: "tls",
    fills: true,
    orders: (field) => [
      {
        ...place(field),
        ...everyConnection(field),
        handshake: false,
        reconnect: true,
        steps: [{ send: HALF_HELLO }],
      },
    ],
    bites: ({ opened }, { connections }) => opened > connections * 0.8,
  },
  {
    name: "login-bodies",
    title: "login bodies of 16 KB that stop before the end, 64 addresses",
    orders: (field) => [
      {
        ...place(field),
        ...manyAddresses(field),
        steps: [
          {
            send: post(
              "/api/authenticate",
              "Content-Type: application/json\r\nContent-Length: 16384\r\n",
            ),
          },
          { send: " ".repeat(1_000), times: 16 },
        ],
      },
    ],
    bites: ({ opened, sent }) => opened > 0 && sent > opened * 10_000,
  },
  {
    name: "logins",
    title: "wrong passwords without end, 64 addresses",
    orders(field) {
      const body = login("mallory");
      const fields = `Content-Type: application/json\r\nContent-Length: ${body.length}\r\n`;
      const step = { send: `${post("/api/authenticate", fields)}${body}` };
      return [
        {
          ...place(field),
          addresses: addresses(64),
          connections: 640,
          read: "all",
          steps: Array.from({ length: 50 }, () => [step, { await: "\r\n\r\n" }]).flat(),
        },
      ];
    },
    bites: ({ sent, received }) => sent > 640 * 100 && received > 0,
  },
  {
    name: "names",
    title: "header names of 15 KB, each sent once",
    orders: (field) => [
      {
        ...place(field),
        addresses: addresses(1),
        connections: 1,
        steps: Array.from({ length: 2_000 }, (_, index) => [
          { send: request("/app/ok", { fields: `X-${index}-${"n".repeat(15_000)}: 1\r\n` }) },
          { await: "\r\n\r\n" },
        ]).flat(),
      },
    ],
    bites: ({ sent }) => sent > 1_000 * 15_000,
  },
];
