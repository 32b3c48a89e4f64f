package main

import (
	"archive/tar"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"time"
)

// user is the account that the processes of the image run as.
const user = "65532:65532"

// image writes the container image as an OCI layout in a tar file (OCI image
// specification 1.1), which docker load, podman load and skopeo read. It has
// the two binaries, root certificates and nothing else.
func (r *release) image(t target, binaries []entry) error {
	root := []entry{
		{name: "etc/", mode: 0o755},
		{name: "etc/passwd", mode: 0o644, text: []byte("root:x:0:0:root:/:/sbin/nologin\nassent:x:65532:65532:assent:/var/lib/assent:/sbin/nologin\n")},
		{name: "etc/group", mode: 0o644, text: []byte("root:x:0:\nassent:x:65532:\n")},
		{name: "etc/ssl/", mode: 0o755},
		{name: "etc/ssl/certs/", mode: 0o755},
		{name: "etc/ssl/certs/ca-certificates.crt", mode: 0o644, text: certificates()},
		{name: "etc/assent/", mode: 0o755},
		{name: "tmp/", mode: 0o1777},
		{name: "usr/", mode: 0o755},
		{name: "usr/local/", mode: 0o755},
		{name: "usr/local/bin/", mode: 0o755},
		{name: "var/", mode: 0o755},
		{name: "var/lib/", mode: 0o755},
		{name: "var/lib/assent/", mode: 0o777}, // a volume there is the user's, whatever its number is
	}
	for _, f := range binaries {
		f.name = "usr/local/bin/" + f.name
		root = append(root, f)
	}
	var plain bytes.Buffer
	if err := writeTar(tar.NewWriter(&plain), root, r.time); err != nil {
		return err
	}
	layer, err := tarGz(root, r.time)
	if err != nil {
		return err
	}

	stamp := r.time.Format(time.RFC3339)
	config, err := json.Marshal(map[string]any{
		"created": stamp, "architecture": t.arch, "os": t.os,
		"config": map[string]any{
			"User":         user,
			"Env":          []string{"PATH=/usr/local/bin", "SSL_CERT_FILE=/etc/ssl/certs/ca-certificates.crt"},
			"Entrypoint":   []string{"/usr/local/bin/assent"},
			"Cmd":          []string{"serve", "--config", "/etc/assent/serve.yaml"},
			"WorkingDir":   "/var/lib/assent",
			"ExposedPorts": map[string]any{"7717/tcp": struct{}{}, "9117/tcp": struct{}{}},
			"Labels": map[string]string{
				"org.opencontainers.image.source":   "https://github.com/assent-dev/assent",
				"org.opencontainers.image.version":  r.version,
				"org.opencontainers.image.revision": r.commit,
				"org.opencontainers.image.licenses": "Apache-2.0",
			},
		},
		"rootfs":  map[string]any{"type": "layers", "diff_ids": []string{sum(plain.Bytes())}},
		"history": []map[string]any{{"created": stamp, "created_by": "make release"}},
	})
	if err != nil {
		return err
	}
	manifest, err := json.Marshal(map[string]any{
		"schemaVersion": 2, "mediaType": "application/vnd.oci.image.manifest.v1+json",
		"config": described("application/vnd.oci.image.config.v1+json", config),
		"layers": []any{described("application/vnd.oci.image.layer.v1.tar+gzip", layer)},
	})
	if err != nil {
		return err
	}
	name := "assent:" + r.version
	pointer := described("application/vnd.oci.image.manifest.v1+json", manifest)
	pointer["annotations"] = map[string]string{"org.opencontainers.image.ref.name": r.version, "io.containerd.image.name": name}
	index, err := json.Marshal(map[string]any{
		"schemaVersion": 2, "mediaType": "application/vnd.oci.image.index.v1+json", "manifests": []any{pointer},
	})
	if err != nil {
		return err
	}
	// Docker before version 25 reads this file and not the index.
	docker, err := json.Marshal([]any{map[string]any{
		"Config": blob(config), "RepoTags": []string{name}, "Layers": []string{blob(layer)},
	}})
	if err != nil {
		return err
	}

	text, err := tarGz([]entry{
		{name: "oci-layout", text: []byte(`{"imageLayoutVersion":"1.0.0"}`), mode: 0o644},
		{name: "index.json", text: index, mode: 0o644},
		{name: "manifest.json", text: docker, mode: 0o644},
		{name: "blobs/", mode: 0o755},
		{name: "blobs/sha256/", mode: 0o755},
		{name: blob(config), text: config, mode: 0o644},
		{name: blob(layer), text: layer, mode: 0o644},
		{name: blob(manifest), text: manifest, mode: 0o644},
	}, r.time)
	if err != nil {
		return err
	}

	return r.write(r.base(t)+".image.tar.gz", text)
}

func sum(text []byte) string {
	digest := sha256.Sum256(text)
	return "sha256:" + hex.EncodeToString(digest[:])
}

// blob returns the path of a part in an OCI layout.
func blob(text []byte) string { return "blobs/sha256/" + sum(text)[len("sha256:"):] }

func described(mediaType string, text []byte) map[string]any {
	return map[string]any{"mediaType": mediaType, "digest": sum(text), "size": len(text)}
}
