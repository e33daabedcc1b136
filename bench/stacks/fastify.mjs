// Fastify with its own proxy (undici) and its own verification with the cache on, as in their READMEs.
import proxy from "@fastify/http-proxy";
import jwt from "@fastify/jwt";
import Fastify from "fastify";
import { given, tell, tlsOptions } from "./given.mjs";

const app = Fastify({ https: tlsOptions ?? null, bodyLimit: 1024 ** 3 });
await app.register(jwt, {
  secret: { public: given.publicKey },
  verify: {
    algorithms: [given.algorithm],
    allowedIss: given.issuer,
    allowedAud: given.audience,
    requiredClaims: ["exp"],
    cache: true,
  },
});
app.addHook("preHandler", (request) => request.jwtVerify());
await app.register(proxy, { upstream: given.backend });
await app.listen({ host: "127.0.0.1", port: 0 });
tell(app.server);
