// Express with the two packages that most tutorials use, and a keep-alive agent for the backend.
import { Agent } from "node:http";
import express from "express";
import { expressjwt } from "express-jwt";
import { createProxyMiddleware } from "http-proxy-middleware";
import { given, listen } from "./given.mjs";

const app = express();
app.use(
  expressjwt({
    secret: given.publicKey,
    algorithms: [given.algorithm],
    issuer: given.issuer,
    audience: given.audience,
  }),
);
app.use(
  createProxyMiddleware({
    target: given.backend,
    changeOrigin: true,
    agent: new Agent({ keepAlive: true }),
  }),
);
listen(app);
