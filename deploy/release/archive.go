package main

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"io/fs"
	"time"
)

// entry is a file of a package.
type entry struct {
	name string
	text []byte
	mode int64
}

// tarGz packs files. Owners are root, times are those of the commit.
func tarGz(files []entry, at time.Time) ([]byte, error) {
	var out bytes.Buffer
	zipped, err := gzip.NewWriterLevel(&out, gzip.BestCompression)
	if err != nil {
		return nil, err
	}
	if err := writeTar(tar.NewWriter(zipped), files, at); err != nil {
		return nil, err
	}
	err = zipped.Close()

	return out.Bytes(), err
}

func writeTar(w *tar.Writer, files []entry, at time.Time) error {
	for _, f := range files {
		header := tar.Header{Name: f.name, Mode: f.mode, Size: int64(len(f.text)), ModTime: at, Format: tar.FormatUSTAR}
		if f.text == nil {
			header.Typeflag = tar.TypeDir
		}
		if err := w.WriteHeader(&header); err != nil {
			return err
		}
		if _, err := w.Write(f.text); err != nil {
			return err
		}
	}

	return w.Close()
}

func zipped(files []entry, at time.Time) ([]byte, error) {
	var out bytes.Buffer
	w := zip.NewWriter(&out)
	for _, f := range files {
		header := zip.FileHeader{Name: f.name, Method: zip.Deflate, Modified: at}
		header.SetMode(fs.FileMode(f.mode))
		part, err := w.CreateHeader(&header)
		if err != nil {
			return nil, err
		}
		if _, err := part.Write(f.text); err != nil {
			return nil, err
		}
	}
	err := w.Close()

	return out.Bytes(), err
}

// archive writes the archive of a platform: a zip file for Windows, else a
// compressed tar file.
func (r *release) archive(t target, files []entry) error {
	documents, err := r.documents()
	if err != nil {
		return err
	}
	base := r.base(t)
	var all []entry
	for _, f := range append(files, documents...) {
		f.name = base + "/" + f.name
		all = append(all, f)
	}
	pack, extension := tarGz, ".tar.gz"
	if t.os == "windows" {
		pack, extension = zipped, ".zip"
	}
	text, err := pack(all, r.time)
	if err != nil {
		return err
	}

	return r.write(base+extension, text)
}
