#include "http/certificate.h"

#include <ctime>
#include <memory>

#include <openssl/asn1.h>
#include <openssl/bio.h>
#include <openssl/bn.h>
#include <openssl/ec.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>

namespace orrery::http {
namespace {

constexpr UnixSeconds kDay = 24 * 60 * 60;
constexpr UnixSeconds kValidity = 10 * 365 * kDay;

template <auto free>
struct Free {
  template <typename T>
  void operator()(T* object) const {
    free(object);
  }
};
using BioPtr = std::unique_ptr<BIO, Free<BIO_free>>;
using KeyPtr = std::unique_ptr<EVP_PKEY, Free<EVP_PKEY_free>>;
using CertificatePtr = std::unique_ptr<X509, Free<X509_free>>;
using NumberPtr = std::unique_ptr<BIGNUM, Free<BN_free>>;
using NamesPtr = std::unique_ptr<GENERAL_NAMES, Free<GENERAL_NAMES_free>>;
using NamePtr = std::unique_ptr<GENERAL_NAME, Free<GENERAL_NAME_free>>;
using StringPtr = std::unique_ptr<ASN1_STRING, Free<ASN1_STRING_free>>;
using ExtensionPtr = std::unique_ptr<X509_EXTENSION, Free<X509_EXTENSION_free>>;

Error failed(const char* what) {
  ERR_clear_error();
  return Error(ErrorCode::Internal, std::string("cannot make a certificate: ") + what);
}

// Positive and with 128 random bits, as browsers expect of a serial number.
bool set_serial(X509* certificate) {
  NumberPtr number(BN_new());
  return number && BN_rand(number.get(), 128, BN_RAND_TOP_ANY, BN_RAND_BOTTOM_ANY) == 1 &&
         BN_to_ASN1_INTEGER(number.get(), X509_get_serialNumber(certificate)) != nullptr;
}

bool set_subject_and_issuer(X509* certificate) {
  X509_NAME* name = X509_get_subject_name(certificate);
  const auto add = [&](const char* field, const char* text) {
    return X509_NAME_add_entry_by_txt(name, field, MBSTRING_UTF8,
                                      reinterpret_cast<const unsigned char*>(text), -1, -1, 0) == 1;
  };
  return add("O", "Orrery") && add("CN", "localhost") &&
         X509_set_issuer_name(certificate, name) == 1;
}

NamePtr alternative_name(const std::string& text) {
  NamePtr name(GENERAL_NAME_new());
  if (!name) return nullptr;
  if (ASN1_OCTET_STRING* address = a2i_IPADDRESS(text.c_str()); address != nullptr) {
    GENERAL_NAME_set0_value(name.get(), GEN_IPADD, address);
    return name;
  }
  ERR_clear_error();
  StringPtr dns(ASN1_IA5STRING_new());
  if (!dns || ASN1_STRING_set(dns.get(), text.data(), static_cast<int>(text.size())) != 1) {
    return nullptr;
  }
  GENERAL_NAME_set0_value(name.get(), GEN_DNS, dns.release());
  return name;
}

// Built as objects, not from a configuration string: a comma in a name would end it there.
bool add_alternative_names(X509* certificate, const std::vector<std::string>& texts) {
  NamesPtr names(GENERAL_NAMES_new());
  if (!names) return false;
  for (const auto& text : texts) {
    auto name = alternative_name(text);
    if (!name || sk_GENERAL_NAME_push(names.get(), name.get()) == 0) return false;
    name.release();
  }
  return X509_add1_ext_i2d(certificate, NID_subject_alt_name, names.get(), 0, 0) == 1;
}

bool add_extension(X509* certificate, int nid, const char* value) {
  X509V3_CTX context;
  X509V3_set_ctx_nodb(&context);
  X509V3_set_ctx(&context, certificate, certificate, nullptr, nullptr, 0);
  ExtensionPtr extension(X509V3_EXT_conf_nid(nullptr, &context, nid, value));
  return extension && X509_add_ext(certificate, extension.get(), -1) == 1;
}

/// None when it can't be read.
CertificatePtr read_certificate(std::string_view pem) {
  const BioPtr bio(BIO_new_mem_buf(pem.data(), static_cast<int>(pem.size())));
  CertificatePtr certificate(bio ? PEM_read_bio_X509(bio.get(), nullptr, nullptr, nullptr)
                                 : nullptr);
  ERR_clear_error();
  return certificate;
}

template <typename Write>
std::string pem_text(Write write) {
  BioPtr bio(BIO_new(BIO_s_mem()));
  if (!bio || write(bio.get()) != 1) return {};
  char* text = nullptr;
  const long size = BIO_get_mem_data(bio.get(), &text);
  return std::string(text, static_cast<std::size_t>(size));
}

}  // namespace

Result<Certificate> make_self_signed_certificate(const std::vector<std::string>& extra_names,
                                                 UnixSeconds now) {
  KeyPtr key(EVP_EC_gen("P-256"));
  if (!key) return failed("no P-256 key");
  CertificatePtr certificate(X509_new());
  if (!certificate) return failed("no memory");

  X509_set_version(certificate.get(), X509_VERSION_3);
  if (!set_serial(certificate.get())) return failed("no serial number");
  // A day of the past, for clients whose clock is behind ours.
  const std::time_t start = now - kDay;
  const std::time_t end = now + kValidity;
  if (ASN1_TIME_set(X509_getm_notBefore(certificate.get()), start) == nullptr ||
      ASN1_TIME_set(X509_getm_notAfter(certificate.get()), end) == nullptr) {
    return failed("the current time is out of range");
  }
  if (!set_subject_and_issuer(certificate.get()) ||
      X509_set_pubkey(certificate.get(), key.get()) != 1) {
    return failed("subject or key refused");
  }

  std::vector<std::string> names = {"localhost", "127.0.0.1", "::1"};
  for (const auto& name : extra_names) {
    if (!name.empty()) names.push_back(name);
  }
  // CA:TRUE, so that a client can be told to trust it as it is.
  if (!add_extension(certificate.get(), NID_basic_constraints, "critical,CA:TRUE") ||
      !add_extension(certificate.get(), NID_key_usage, "critical,digitalSignature,keyCertSign") ||
      !add_extension(certificate.get(), NID_ext_key_usage, "serverAuth") ||
      !add_extension(certificate.get(), NID_subject_key_identifier, "hash") ||
      !add_alternative_names(certificate.get(), names)) {
    return failed("extension refused");
  }
  if (X509_sign(certificate.get(), key.get(), EVP_sha256()) == 0) return failed("not signed");

  Certificate made;
  made.certificate_pem =
      pem_text([&](BIO* bio) { return PEM_write_bio_X509(bio, certificate.get()); });
  made.key_pem = pem_text([&](BIO* bio) {
    return PEM_write_bio_PrivateKey(bio, key.get(), nullptr, nullptr, 0, nullptr, nullptr);
  });
  if (made.certificate_pem.empty() || made.key_pem.empty()) return failed("no memory");
  return made;
}

CertificateState certificate_state(std::string_view certificate_pem, std::string_view name,
                                   UnixSeconds now) {
  const CertificatePtr certificate = read_certificate(certificate_pem);
  if (!certificate) return CertificateState::Unreadable;
  const std::string text(name);
  const bool named = X509_check_ip_asc(certificate.get(), text.c_str(), 0) == 1 ||
                     X509_check_host(certificate.get(), text.data(), text.size(), 0, nullptr) == 1;
  ERR_clear_error();
  if (!named) return CertificateState::OtherName;
  std::time_t at = now;
  // 0 is an error: a time that can't be understood.
  const int begin = X509_cmp_time(X509_get0_notBefore(certificate.get()), &at);
  const int end = X509_cmp_time(X509_get0_notAfter(certificate.get()), &at);
  ERR_clear_error();
  if (begin == 0 || end == 0) return CertificateState::Unreadable;
  if (end < 0) return CertificateState::Expired;
  return begin > 0 ? CertificateState::NotYetValid : CertificateState::Valid;
}

bool certificate_serves(std::string_view certificate_pem, std::string_view name, UnixSeconds now) {
  return certificate_state(certificate_pem, name, now) == CertificateState::Valid;
}

bool belong_together(const Certificate& certificate) {
  const CertificatePtr parsed = read_certificate(certificate.certificate_pem);
  const BioPtr bio(
      BIO_new_mem_buf(certificate.key_pem.data(), static_cast<int>(certificate.key_pem.size())));
  const KeyPtr key(bio ? PEM_read_bio_PrivateKey(bio.get(), nullptr, nullptr, nullptr) : nullptr);
  const bool together = parsed && key && X509_check_private_key(parsed.get(), key.get()) == 1;
  ERR_clear_error();
  return together;
}

}  // namespace orrery::http
