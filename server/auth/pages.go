package auth

import (
	"bytes"
	"embed"
	"encoding/json"
	"html/template"
	"net/http"
	"sync"
)

//go:embed pages.html
var pagesFS embed.FS

// pages are parsed once, on first use. The file is part of the program, so an error would show in
// every test.
var pages = sync.OnceValue(func() *template.Template {
	return template.Must(template.ParseFS(pagesFS, "pages.html"))
})

// Data of the pages.
type (
	choice struct{ Title, Start string }

	signInView struct {
		Choices []choice
		Dev     bool
		Warn    bool // of Dev
	}

	devView struct {
		Person, Tenant, Action string
		Warn                   bool
	}

	signedOutView struct{ Title, Elsewhere string }

	message struct {
		Title, Text string
		Again       string // where to try again; may be empty
		SignOut     bool   // offer to sign out
	}
)

func show(w http.ResponseWriter, status int, page string, data any) {
	var b bytes.Buffer
	if err := pages().ExecuteTemplate(&b, page, data); err != nil {
		http.Error(w, "the page can't be shown", http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(status)
	_, _ = w.Write(b.Bytes()) // a client that has disconnected can't read it
}

// problem is the form of refusals for programs, as in docs/contracts/http.md.
type problem struct {
	Type   string `json:"type"`
	Title  string `json:"title"`
	Status int    `json:"status"`
	Detail string `json:"detail"`
	Code   string `json:"code"`
	Next   string `json:"next_action"`
}

// refuse answers with a page, or with a problem if the client is a program.
func refuse(w http.ResponseWriter, r *http.Request, status int, m message) {
	if status == http.StatusServiceUnavailable || status == http.StatusTooManyRequests {
		w.Header().Set("Retry-After", "5")
	}
	if wantsPage(r) || r.Method == http.MethodPost && r.Header.Get("Sec-Fetch-Mode") == "navigate" {
		show(w, status, "message", m)
		return
	}
	p := problem{
		Type:   "about:blank",
		Title:  m.Title,
		Status: status,
		Detail: m.Text,
		Code:   "sign_in",
		Next:   "none",
	}
	switch status {
	case http.StatusServiceUnavailable:
		p.Code, p.Next = "unavailable", "retry"
	case http.StatusTooManyRequests:
		p.Code, p.Next = "too_many", "retry"
	}

	text, _ := json.Marshal(p) // strings and a number: can't fail
	w.Header().Set("Content-Type", "application/problem+json")
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(status)
	_, _ = w.Write(text)
}

func (a *Auth) signInPage(w http.ResponseWriter, r *http.Request) {
	v := signInView{Dev: a.cfg.Dev, Warn: a.cfg.Dev && !a.cfg.Personal}
	next := local(r.URL.Query().Get("next"))
	for _, p := range a.providers {
		v.Choices = append(v.Choices, choice{p.Title, p.startPath(next)})
	}
	show(w, http.StatusOK, "sign-in", v)
}

func (a *Auth) signedOutPage(w http.ResponseWriter, r *http.Request) {
	var v signedOutView
	if p := a.provider(r.URL.Query().Get("from")); p != nil {
		v.Title, v.Elsewhere = p.Title, p.endSession(a.base.String()+"/auth/signed-out")
	}
	show(w, http.StatusOK, "signed-out", v)
}
