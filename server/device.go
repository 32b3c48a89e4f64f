package server

import (
	"errors"
	"net/http"
	"strings"

	"github.com/assent-dev/assent/server/openapi"
	"github.com/assent-dev/assent/server/tokens"
)

// devices returns the sign-in of command lines.
func (x adminOps) devices() *tokens.Devices {
	return &tokens.Devices{Maker: x.maker(), Values: x.cfg.Store, Key: x.cfg.Key}
}

// beginDevice gives a command line the code that its person types into the inbox.
func (x adminOps) beginDevice() error {
	if x.cfg.PublicURL == "" {
		return fail(openapi.CodeNotFound, "nobody can sign in here, so no command line can")
	}
	f := object(x.body, "", "name").must("name")
	name := f.text("name")
	if f.err != nil {
		return f.err
	}
	begun, err := x.devices().Begin(name)
	if err != nil {
		return err
	}

	return x.answer(http.StatusCreated, openapi.Device{
		DeviceCode:      begun.DeviceCode,
		UserCode:        begun.UserCode,
		Expires:         begun.Expires,
		VerificationURL: strings.TrimSuffix(x.cfg.PublicURL, "/") + "/device",
		Interval:        int(tokens.DeviceInterval.Seconds()),
	})
}

// takeDeviceToken gives a command line the token of the person who confirmed its code.
func (x adminOps) takeDeviceToken() error {
	f := object(x.body, "", "device_code").must("device_code")
	code := f.text("device_code")
	if f.err != nil {
		return f.err
	}
	t, secret, err := x.devices().Take(x.r.Context(), code)
	switch {
	case errors.Is(err, tokens.ErrDevicePending):
		return fail(openapi.CodePending, err.Error())
	case errors.Is(err, tokens.ErrDeviceRefused):
		return fail(openapi.CodeNotApproved, err.Error())
	case errors.Is(err, tokens.ErrDeviceGone):
		return fail(openapi.CodeNotFound, err.Error())
	case err != nil:
		return err
	}

	return x.answer(http.StatusCreated, openapi.CreatedToken{Token: tokens.Shown(t), Secret: secret})
}
