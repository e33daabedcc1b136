import type { Kind } from "./kind.ts";
import { leaveBeforeAnswer, leaveInDownload, leaveInUpload } from "./leavers.ts";
import { badLogin, goodLogin, malformedLogin } from "./logins.ts";
import { hugeHead, noHttp, unfinishedHead } from "./nameless.ts";
import * as refusals from "./refusals.ts";
import * as requests from "./requests.ts";
import { slowReader, slowWriter } from "./slow.ts";
import { converse, leaveWebSocket, refusedWebSocket } from "./websockets.ts";

/** All kinds of traffic. A new one needs a function and a line here. */
export const KINDS = {
  get: { weight: 60, run: requests.get },
  "get on a new connection": { weight: 8, run: requests.getOnNewConnection },
  "get without token": { weight: 12, run: requests.getWithoutToken },
  "get with a foreign token": { weight: 12, run: requests.getWithForeignToken },
  version: { weight: 6, run: requests.version },
  "body of a few KiB": { weight: 25, run: requests.post },
  upload: { weight: 3, run: requests.upload },
  "chunked upload": { weight: 5, run: requests.chunkedUpload },
  "expecting upload": { weight: 2, run: requests.expectingUpload },
  download: { weight: 3, run: requests.download },
  "late answer": { weight: 6, run: requests.lateAnswer },
  "slow reader": { weight: 2, run: slowReader },
  "slow writer": { weight: 2, run: slowWriter },
  login: { weight: 5, run: goodLogin },
  "wrong password": { weight: 4, run: badLogin },
  "malformed login": { weight: 1, run: malformedLogin },
  "no token": { weight: 6, run: refusals.withoutToken },
  "bad token": { weight: 12, run: refusals.withBadToken },
  forbidden: { weight: 3, run: refusals.forbidden },
  nowhere: { weight: 2, run: refusals.nowhere },
  "wrong method": { weight: 1, run: refusals.wrongMethod },
  "too large": { weight: 1, run: refusals.tooLarge },
  "unmet expectation": { weight: 1, run: refusals.unmetExpectation },
  "ambiguous path": { weight: 2, run: refusals.ambiguous },
  "no HTTP": { weight: 2, run: noHttp },
  "huge head": { weight: 1, run: hugeHead },
  "unfinished head": { weight: 2, run: unfinishedHead },
  "left in upload": { weight: 2, run: leaveInUpload },
  "left before the answer": { weight: 3, run: leaveBeforeAnswer },
  "left in download": { weight: 2, run: leaveInDownload },
  websocket: { weight: 5, run: converse },
  "left websocket": { weight: 2, run: leaveWebSocket },
  "refused websocket": { weight: 1, run: refusedWebSocket },
} as const satisfies Record<string, Kind>;
