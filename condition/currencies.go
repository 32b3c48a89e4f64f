package condition

import "strings"

// minorUnits returns the number of decimals of the smallest unit of an active currency of ISO
// 4217, without those for which the standard names none, such as XAU.
func minorUnits(code string) (decimals int, known bool) {
	for decimals, codes := range currencies {
		if strings.Contains(codes, " "+code+" ") {
			return decimals, true
		}
	}
	return 0, false
}

// currencies are the active codes of ISO 4217 by their number of decimals.
var currencies = [...]string{
	0: " BIF CLP DJF GNF ISK JPY KMF KRW PYG RWF UGX UYI VND VUV XAF XOF XPF ",
	2: " AED AFN ALL AMD AOA ARS AUD AWG AZN BAM BBD BDT BMD BND BOB BOV BRL BSD BTN BWP BYN BZD CAD CDF CHE CHF CHW" +
		" CNY COP COU CRC CUP CVE CZK DKK DOP DZD EGP ERN ETB EUR FJD FKP GBP GEL GHS GIP GMD GTQ GYD HKD HNL HTG HUF" +
		" IDR ILS INR IRR JMD KES KGS KHR KPW KYD KZT LAK LBP LKR LRD LSL MAD MDL MGA MKD MMK MNT MOP MRU MUR MVR MWK" +
		" MXN MXV MYR MZN NAD NGN NIO NOK NPR NZD PAB PEN PGK PHP PKR PLN QAR RON RSD RUB SAR SBD SCR SDG SEK SGD SHP" +
		" SLE SOS SRD SSP STN SVC SYP SZL THB TJS TMT TOP TRY TTD TWD TZS UAH USD USN UYU UZS VED VES WST XCD XCG YER" +
		" XAD ZAR ZMW ZWG ",
	3: " BHD IQD JOD KWD LYD OMR TND ",
	4: " CLF UYW ",
}

// unitless are the active codes of ISO 4217 without a minor unit.
const unitless = " XAG XAU XBA XBB XBC XBD XDR XPD XPT XSU XTS XUA XX" + "X "
