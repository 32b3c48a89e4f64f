package permit

import (
	"errors"
	"fmt"
	"strconv"

	"github.com/assent-dev/assent/value"
)

// ErrInexact is returned if arguments contain a number that languages read differently. There
// can be no permit for them.
var ErrInexact = errors.New("the arguments hold a number that not every language reads as the same")

// Digest returns "sha256:" and the digest of a call's arguments in the form of RFC 8785. The
// arguments must be one JSON object in UTF-8 without duplicate names. It returns ErrInexact if
// readers could disagree about a number.
func Digest(arguments []byte) (string, error) {
	v, err := value.Parse(arguments, value.DefaultLimits())
	if err != nil {
		return "", fmt.Errorf("the arguments: %w", err)
	}
	if v.Kind != value.Object {
		return "", errors.New("the arguments: expected an object")
	}
	if err := exact(v); err != nil {
		return "", err
	}
	return v.Digest().String(), nil
}

// exact returns an error if a number in v can't be represented exactly by a double, or is
// larger than the integers whose neighbours are 1 apart (RFC 7493 §2.2).
func exact(v value.Value) error {
	switch v.Kind {
	case value.Number:
		return exactNumber(v.Num)
	case value.Array:
		for _, item := range v.Items {
			if err := exact(item); err != nil {
				return err
			}
		}
	case value.Object:
		for _, m := range v.Members {
			if err := exact(m.Value); err != nil {
				return err
			}
		}
	}

	return nil
}

func exactNumber(n value.Num) error {
	const largest = 1<<53 - 1
	if n.Cmp(value.IntNum(largest)) > 0 || n.Cmp(value.IntNum(-largest)) < 0 {
		return fmt.Errorf("%w: %s is beyond 2^53", ErrInexact, n)
	}
	double, err := strconv.ParseFloat(n.String(), 64)
	if near, ok := value.FloatNum(double); err != nil || !ok || near.Cmp(n) != 0 {
		return fmt.Errorf("%w: %s has more digits than a double keeps", ErrInexact, n)
	}
	return nil
}
