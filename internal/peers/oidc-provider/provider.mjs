// A certified OpenID Connect provider (panva's oidc-provider) with its own defaults: claims stand in UserInfo, groups come with a scope of theirs.
//
// usage: provider.mjs PORT REDIRECT_URI SIGNED_OUT_URI; ALGORITHM (RS256) signs ID tokens, CLOCK is by how many seconds the provider's clock is ahead,
// LIFE (3600) how many seconds ID tokens live.
const [port, redirect, signedOut] = process.argv.slice(2);
const { ALGORITHM = "RS256", CLOCK = "0", LIFE = "3600" } = process.env;

const now = Date.now.bind(Date);
Date.now = () => now() + Number(CLOCK) * 1000;

const { Provider } = await import("oidc-provider");
const { generateKeyPairSync } = await import("node:crypto");

const kinds = {
  RS256: () => generateKeyPairSync("rsa", { modulusLength: 2048 }),
  PS256: () => generateKeyPairSync("rsa", { modulusLength: 2048 }),
  ES256: () => generateKeyPairSync("ec", { namedCurve: "P-256" }),
  EdDSA: () => generateKeyPairSync("ed25519"),
};
const jwk = kinds[ALGORITHM]().privateKey.export({ format: "jwk" });

const people = {
  mara: { email: "mara@example.com", email_verified: true, name: "Mara" },
  rita: { email: "rita@example.com", email_verified: true, name: "Rita", groups: ["risk", "admins", "staff"] },
  eve: { email: "eve@example.com", email_verified: true, name: "Eve", groups: ["staff"] },
};

const provider = new Provider(`http://127.0.0.1:${port}`, {
  jwks: { keys: [{ ...jwk, alg: ALGORITHM, use: "sig", kid: ALGORITHM + now() }] },
  clients: [
    {
      client_id: "assent",
      client_secret: "secret of the client",
      redirect_uris: [redirect],
      post_logout_redirect_uris: [signedOut],
      id_token_signed_response_alg: ALGORITHM,
      application_type: "native", // lets it have an address of this machine
    },
  ],
  enabledJWA: { idTokenSigningAlgValues: [ALGORITHM] },
  claims: { openid: ["sub"], email: ["email", "email_verified"], profile: ["name"], groups: ["groups"] },
  ttl: { IdToken: Number(LIFE) },
  cookies: { keys: ["a", "b"] },
  findAccount: (_, id) => people[id] && { accountId: id, claims: () => ({ sub: id, ...people[id] }) },
});
provider.listen(Number(port), "127.0.0.1", () => console.log("listening"));
