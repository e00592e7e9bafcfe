# Writes the sdkconfig.h that Kconfig files default to. With -v all=1 every bool is on.
# It knows config, bool, int, string and default, one to a line.
BEGIN { print "/* Generated from the defaults of Kconfig files. */"; print "#define CONFIG_MBEDTLS_CERTIFICATE_BUNDLE 1" }
$1 == "config" { finish(); name = $2 }
$1 == "bool" || $1 == "int" || $1 == "string" { type = $1 }
$1 == "default" { value = $0; sub(/^[ \t]*default[ \t]+/, "", value) }
END { finish() }
function finish() {
    if (type == "bool" && (value == "y" || all)) print "#define CONFIG_" name " 1"
    if (type == "int" || type == "string") print "#define CONFIG_" name " " value
    type = ""; value = ""
}
