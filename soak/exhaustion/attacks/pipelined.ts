import type { Step } from "../crowd.ts";
import { type Attack, CLOGGED, manyAddresses, oneAddress, request } from "./attack.ts";

/** Large requests that wait for an earlier answer: some 1.5 MB per connection, and fewer than a hundred of them. */
const LARGE = 16_000;
const LARGE_WAITING = 92;
/** Tiny requests whose refusals fill the kernel buffers of both sides: measured as 132 or 133, over plain HTTP and TLS. */
const REFUSED = [130, 132, 134, 136];

interface Behind extends Partial<Attack> {
  readonly from?: typeof manyAddresses;
  readonly times?: number;
  readonly bytes?: number;
}

/** Creates an attack that sends requests of `bytes` bytes after the first steps of each connection. */
function behind(
  name: string,
  title: string,
  first: readonly Step[],
  { from = manyAddresses, times = LARGE_WAITING, bytes = LARGE, ...more }: Behind = {},
): Attack {
  return {
    name,
    title,
    ...more,
    orders: (field) => [
      {
        port: field.port,
        tls: field.tls,
        ...CLOGGED,
        ...from(field),
        steps: [...first, { send: request("/public/ok", { bytes }), times }],
      },
    ],
    bites: ({ opened, sent }) => opened > 0 && sent > opened * Math.min(4_000, bytes * 50),
  };
}

/** The refusals should be sent before more requests arrive. */
const REFUSED_SECONDS = 5;
const refused: Step[] = [{ send: request("/app/ok"), times: REFUSED }, { pause: REFUSED_SECONDS }];
const slow: Step[] = [{ send: request("/public/slow?ms=30000") }];
const download: Step[] = [{ send: request("/public/bytes?size=50000000") }];

const lead = REFUSED_SECONDS;
const slowBackend = true;
const from = oneAddress;
const long = true;

/** Complete requests that wait for the answers to earlier ones. */
export const PIPELINED: readonly Attack[] = [
  behind("refusals", "16 KB requests behind unread refusals", refused, { lead }),
  behind("refusals-one", "the same from one address", refused, { from, lead, long }),
  behind("refusals-endless", "the same without end", refused, { times: -1, lead, long }),
  behind("slow-answer", "16 KB requests behind a slow answer", slow, { slowBackend }),
  behind("slow-answer-one", "the same from one address", slow, { from, slowBackend, long }),
  behind("slow-answer-tiny", "98 tiny requests behind a slow answer", slow, {
    times: 98,
    bytes: 0,
    slowBackend,
  }),
  behind("unread-download", "16 KB requests behind an unread download", download),
];
